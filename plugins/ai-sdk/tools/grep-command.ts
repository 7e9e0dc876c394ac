/** Longer than any pattern that a person writes. A long one takes time for each file. */
export const MAX_GLOB_CHARS = 1000
const MAX_PATTERNS = 200

export interface GrepQuery {
  /** An absolute path. */
  root: string
  mode: 'content' | 'files_with_matches' | 'count'
  pattern: string
  glob: string | undefined
  ignoreCase: boolean
  before: number
  after: number
}

/**
 * Gives an argument list, never a shell's line: a model's text can only be a pattern. Both programs search the same files, with
 * Perl's expressions where they know them, and print a NUL after each name.
 */
export function ripgrepCommand(query: GrepQuery, isPerl: boolean): string[] {
  return [
    'rg',
    ...['--no-config', '--color=never', '--no-heading', '--with-filename', '--null', '--hidden', '--no-ignore'],
    ...(isPerl ? ['--pcre2'] : []),
    ...common(query),
    ...toNameGlobs(query).map(name => `--glob=${name}`),
    // Later globs win.
    ...['--glob=!.git', '--glob=!node_modules'],
    `--regexp=${query.pattern}`,
    '--',
    query.root,
  ]
}

/** For sandboxes without ripgrep. */
export function grepCommand(query: GrepQuery, isPerl: boolean): string[] {
  return [
    'grep',
    ...['-r', '-H', '-I', '-Z', isPerl ? '-P' : '-E', '--color=never'],
    ...['--exclude-dir=.git', '--exclude-dir=node_modules'],
    ...common(query),
    ...toNameGlobs(query).map(name => `--include=${name}`),
    '-e',
    query.pattern,
    '--',
    query.root,
  ]
}

function common({ mode, ignoreCase, before, after }: GrepQuery): string[] {
  const flags = ignoreCase ? ['-i'] : []
  if (mode === 'files_with_matches') return [...flags, '-l']
  if (mode === 'count') return [...flags, '-c']
  // The number also distinguishes a match from the lines around it.
  flags.push('-n')
  if (before > 0) flags.push('-B', String(before))
  if (after > 0) flags.push('-A', String(after))
  return flags
}

/** grep matches only a file's name, in whatever directory. */
const toNameGlobs = ({ glob }: GrepQuery): string[] =>
  glob === undefined ? [] : expandBraces(glob.slice(glob.lastIndexOf('/') + 1))

/** One pattern for each choice of braces, which grep does not know. Throws when there are too many: each brace may double them. */
function expandBraces(glob: string): string[] {
  let patterns = [glob]
  for (;;) {
    const expanded = patterns.flatMap(expandFirst)
    if (expanded.length > MAX_PATTERNS) throw new Error(`glob: its braces make more than ${MAX_PATTERNS} patterns.`)
    if (expanded.every((pattern, index) => pattern === patterns[index])) return patterns
    patterns = expanded
  }
}

/** The first braces that contain no others. */
function expandFirst(pattern: string): string[] {
  let end = pattern.indexOf('}')
  while (end >= 0 && pattern.lastIndexOf('{', end) < 0) end = pattern.indexOf('}', end + 1)
  if (end < 0) return [pattern]
  const start = pattern.lastIndexOf('{', end)
  const choices = pattern.slice(start + 1, end).split(',')
  return choices.map(choice => pattern.slice(0, start) + choice + pattern.slice(end + 1))
}
