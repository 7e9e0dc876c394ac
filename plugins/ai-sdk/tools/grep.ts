import { z } from 'zod'
import { runCommand } from '../../../src/environment/run-command.ts'
import { grepCommand, MAX_GLOB_CHARS, ripgrepCommand } from './grep-command.ts'
import { parseGrepOutput } from './grep-output.ts'
import { cutEnd } from './output.ts'
import { defineTool, resolvePath } from './tool.ts'

const TIMEOUT_MS = 60_000
const MAX_SEARCH_BYTES = 4 * 1024 * 1024
const DEFAULT_HEAD_LINES = 500

const contextLines = z.coerce.number().int().min(0).max(100).optional()

export const grep = defineTool({
  name: 'Grep',
  description: `Searches the contents of files with a regular expression. "output_mode": "files_with_matches" (default) lists files, "content" shows lines, "count" counts them. Leaves out .git, node_modules and binary files.`,
  input: z.object({
    pattern: z.string().min(1).describe('The regular expression'),
    path: z.string().optional().describe('A file or directory; the working directory unless given'),
    glob: z.string().max(MAX_GLOB_CHARS).optional().describe('Only files whose name matches, such as "*.{ts,tsx}"'),
    output_mode: z.enum(['content', 'files_with_matches', 'count']).optional(),
    '-i': z.boolean().optional().describe('Without regard to case'),
    '-n': z.boolean().optional().describe('With line numbers (content; default true)'),
    '-A': contextLines.describe('Lines after each match (content)'),
    '-B': contextLines.describe('Lines before each match (content)'),
    '-C': contextLines.describe('Lines around each match (content)'),
    head_limit: z.coerce.number().int().min(0).optional().describe('Only this many lines or files'),
  }),
  isReadOnly: true,
  async run({ path = '.', output_mode: mode = 'files_with_matches', head_limit, ...input }, context) {
    const { environment, cwd, env, signal, programs } = context
    const root = resolvePath(context, path)
    const info = await environment.files.info(root)
    if (!info) throw new Error(`Path does not exist: ${root}`)
    const query = {
      root,
      mode,
      pattern: input.pattern,
      glob: input.glob,
      ignoreCase: input['-i'] ?? false,
      before: input['-B'] ?? input['-C'] ?? 0,
      after: input['-A'] ?? input['-C'] ?? 0,
    }
    // Without Perl's expressions, ripgrep knows others than grep. It also reads a binary file that is named.
    const isSame = info.type === 'dir' && (programs.has('rg -P') || !programs.has('grep -P'))
    const toCommand = (asked: typeof query) =>
      programs.has('rg') && isSame
        ? ripgrepCommand(asked, programs.has('rg -P'))
        : grepCommand(asked, programs.has('grep -P'))
    const options = { cwd, env, signal, timeoutMs: TIMEOUT_MS, maxOutputBytes: MAX_SEARCH_BYTES }
    const search = (asked: typeof query) => runCommand(environment, { command: toCommand(asked), ...options })
    const { stdout, stderr, exitCode, truncated } = await search(query)
    // 1 is no match; 2 may only be a file that could not be read.
    if (exitCode > 1 && stdout === '') {
      const isWrong = (await search({ ...query, root: '/dev/null' })).exitCode > 1
      if (isWrong) throw new Error(`The pattern is no valid regular expression: ${input.pattern.slice(0, 1000)}`)
      throw new Error(stderr.trim().slice(0, 2000) || `Exit code ${exitCode}`)
    }
    const hasGaps = query.before + query.after > 0
    const lines = parseGrepOutput(stdout, { mode, isNumbered: input['-n'] ?? true, hasGaps })
    const limit = head_limit || DEFAULT_HEAD_LINES
    const shown = lines.slice(0, limit).map(line => (line.length > 1000 ? `${line.slice(0, 1000)}… [line cut]` : line))
    const rest = lines.length - shown.length
    const tail = rest > 0 || truncated ? [`[${rest} more not shown. Narrow the search.]`] : []
    return cutEnd([...headline(mode, lines), ...shown, ...tail].join('\n'), 'Narrow the search.')
  },
})

function headline(mode: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [mode === 'files_with_matches' ? 'No files found' : 'No matches found']
  if (mode === 'files_with_matches') return [`Found ${lines.length} file${lines.length === 1 ? '' : 's'}`]
  if (mode === 'content') return []
  const total = lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(':') + 1)), 0)
  return [`Found ${total} matching lines in ${lines.length} files`]
}
