import { type Given, UsageError } from '../command-line.ts'

/** One file or directory to copy. */
export interface Copy {
  from: string
  to: string
}

/** The arguments of `run` and `exec`, and the settings among them. */
export interface OneOff {
  /** A slug, or the path of a file. */
  agent?: string
  /** Files and directories to copy into the sandbox. */
  files: Copy[]
  envs: Record<string, string>
  clone?: string
  /** Files and directories to copy out of the sandbox. */
  outs: Copy[]
  /** Prints a line of JSON for each event, instead of text. */
  json: boolean
  /** Writes a server's log to stderr. */
  verbose: boolean
  /** Settings of `serve`, each with its value. */
  settings: readonly string[]
  /** The words that are not flags, and everything after `--`. */
  words: readonly string[]
}

/** Throws a UsageError. */
export function readOneOff(given: Given, environment: NodeJS.ProcessEnv): OneOff {
  const envs: Record<string, string> = {}
  for (const variable of given.all('env')) addVariable(envs, variable, environment)
  const [agent, clone] = [given.find('agent'), given.find('clone')]
  return {
    files: given.all('file').map(value => parseCopy('--file', 'LOCAL=INSIDE', value)),
    outs: given.all('out').map(value => parseCopy('--out', 'INSIDE=LOCAL', value)),
    envs,
    json: given.has('json'),
    verbose: given.has('verbose'),
    settings: given.settings,
    words: given.words,
    ...(agent !== undefined && { agent }),
    ...(clone !== undefined && { clone }),
  }
}

function parseCopy(flag: string, form: string, value: string): Copy {
  const equals = value.indexOf('=')
  const [from, to] = [value.slice(0, equals), value.slice(equals + 1)]
  if (equals < 1 || to === '') throw new UsageError(`${flag} wants ${form}`)
  return { from, to }
}

/** Parses `NAME=VALUE`, or `NAME` for its value in our environment, which keeps a secret out of command lines. */
function addVariable(envs: Record<string, string>, given: string, environment: NodeJS.ProcessEnv): void {
  const equals = given.indexOf('=')
  const name = equals < 0 ? given : given.slice(0, equals)
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new UsageError('--env wants NAME=VALUE, or NAME')
  const value = equals < 0 ? environment[name] : given.slice(equals + 1)
  if (value === undefined) throw new UsageError(`--env ${name}: it is not set here`)
  envs[name] = value
}
