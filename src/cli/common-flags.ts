import type { Flag } from '../read/arguments.ts'

/** Flags that several commands take. */

/** The settings of `serve` that choose the data directory. */
export const place = ['config', 'data-dir']

export const server: readonly Flag[] = [
  { name: 'url', value: 'URL', default: 'THREADBOX_URL, else http://127.0.0.1:7070', help: 'the server' },
  { name: 'key', value: 'KEY', default: 'THREADBOX_API_KEY', help: 'the API key; better as the variable' },
]

export const team: Flag = { name: 'team', value: 'TEAM', default: 'default', help: 'whose they are' }

export const oneOff: readonly Flag[] = [
  { name: 'file', value: 'LOCAL=INSIDE', help: 'copy a file or a directory in', repeats: true },
  { name: 'out', value: 'INSIDE=LOCAL', help: 'copy a file or a directory out afterwards', repeats: true },
  { name: 'env', value: 'NAME[=VALUE]', help: 'a variable; without a value it has that of the caller', repeats: true },
  { name: 'clone', value: 'URL', help: 'clone a repository, which is then the working directory' },
]

export const json: Flag = { name: 'json', help: 'print JSON' }

export const idsAlone: Flag = { name: 'quiet', help: 'print the first column alone' }

export const quiet: Flag = { name: 'quiet', help: 'say nothing when all went well' }

export const replyAlone: Flag = { name: 'quiet', help: "print the reply's text alone, without what tools gave" }

export const verbose: Flag = { name: 'verbose', help: 'what a server would log goes to stderr' }
