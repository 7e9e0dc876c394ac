import { posix } from 'node:path'
import { z } from 'zod'
import { runCommand } from '../../../src/environment/run-command.ts'
import { MAX_GLOB_CHARS } from './grep-command.ts'
import { cutEnd } from './output.ts'
import { defineTool, resolvePath, type ToolContext } from './tool.ts'

const MAX_FILES = 100
const TIMEOUT_MS = 60_000
const MAX_LIST_BYTES = 16 * 1024 * 1024

export const glob = defineTool({
  name: 'Glob',
  description:
    'Finds files by a pattern such as "**/*.ts" or "src/*.{js,css}", the last changed first. Leaves out .git, and node_modules unless the pattern names it.',
  input: z.object({
    pattern: z.string().min(1).max(MAX_GLOB_CHARS).describe('The glob pattern'),
    path: z.string().optional().describe('Where to look; the working directory unless given'),
  }),
  isReadOnly: true,
  async run({ pattern, path = '.' }, context) {
    const root = resolvePath(context, pattern.startsWith('/') ? staticPart(pattern) : path)
    const matcher = new Bun.Glob(pattern.startsWith('/') ? posix.relative(root, pattern) : pattern.replace(/^\.\//, ''))
    const skipped = pattern.includes('node_modules') ? ['.git'] : ['.git', 'node_modules']
    const { entries, isCut } = await findFiles(context, root, skipped)
    const found = entries
      .filter(({ path: file }) => matcher.match(posix.relative(root, file)))
      .sort((a, b) => b.modifiedAt - a.modifiedAt || (a.path < b.path ? -1 : 1))
    if (found.length === 0) return 'No files found'
    const shown = found.slice(0, MAX_FILES).map(({ path: file }) => file)
    if (found.length > MAX_FILES || isCut) {
      shown.push('(Results are truncated. Consider using a more specific path or pattern.)')
    }
    return cutEnd(shown.join('\n'), 'Use a more specific pattern.')
  },
})

/** The directories of an absolute pattern before its first special character. */
function staticPart(pattern: string): string {
  const special = pattern.search(/[*?[{]/)
  return pattern.slice(0, pattern.lastIndexOf('/', special < 0 ? pattern.length : special) + 1) || '/'
}

interface FoundFile {
  path: string
  modifiedAt: number
}

async function findFiles({ environment, cwd, env, signal }: ToolContext, root: string, skipped: readonly string[]) {
  if (!(await environment.files.info(root))) throw new Error(`Directory does not exist: ${root}`)
  const skip = skipped.flatMap(name => ['-name', name, '-prune', '-o'])
  const find = (print: string[]) => {
    const command = ['find', root, ...skip, '(', '-type', 'f', '-o', '-type', 'l', ')', ...print]
    return runCommand(environment, { command, cwd, env, signal, timeoutMs: TIMEOUT_MS, maxOutputBytes: MAX_LIST_BYTES })
  }
  // What find cannot enter makes it fail in the end: what it has found counts. A small find knows no -printf and no time.
  let { stdout, truncated } = await find(['-printf', '%T@ %p\\0'])
  if (stdout === '') {
    const bare = await find(['-print0'])
    stdout = bare.stdout.replace(/[^\0]+/g, '0 $&')
    truncated = bare.truncated
  }
  const entries = stdout.split('\0').flatMap((entry): FoundFile[] => {
    const space = entry.indexOf(' ')
    return space < 0 ? [] : [{ path: entry.slice(space + 1), modifiedAt: Number(entry.slice(0, space)) }]
  })
  return { entries, isCut: truncated }
}
