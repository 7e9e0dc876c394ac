/** grep prints this between two groups of lines when it shows lines around a match. */
const GAP = '--'

/**
 * Converts what grep or ripgrep printed, with a NUL after each file's name, to the lines to show. They are sorted by file name,
 * since each program walks directories in another order. The output always has line numbers; `isNumbered` keeps them.
 */
export function parseGrepOutput(
  output: string,
  { mode, isNumbered, hasGaps }: { mode: string; isNumbered: boolean; hasGaps: boolean },
): string[] {
  if (mode === 'files_with_matches') return output.split('\0').map(withoutFeed).filter(Boolean).sort(byName)
  const files = new Map<string, string[]>()
  let last: string[] | undefined
  for (const line of output.split('\n')) {
    const end = line.indexOf('\0')
    if (end < 0) {
      if (line === GAP) last?.push(GAP)
      continue
    }
    const path = line.slice(0, end)
    last = files.get(path) ?? []
    files.set(path, last)
    const shown =
      mode === 'count' ? countLine(path, line.slice(end + 1)) : contentLine(path, line.slice(end + 1), isNumbered)
    if (shown !== undefined) last.push(shown)
  }
  const shown = [...files].sort(([a], [b]) => byName(a, b)).map(([, lines]) => withoutGap(lines))
  const gap = mode === 'content' && hasGaps ? [GAP] : []
  return shown.filter(lines => lines.length > 0).flatMap((lines, index) => (index > 0 ? [...gap, ...lines] : lines))
}

const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const withoutFeed = (name: string): string => (name.startsWith('\n') ? name.slice(1) : name)

/** The separator between two files is at the end of the first. */
const withoutGap = (lines: string[]): string[] => (lines.at(-1) === GAP ? lines.slice(0, -1) : lines)

const countLine = (path: string, count: string): string | undefined => (count === '0' ? undefined : `${path}:${count}`)

function contentLine(path: string, text: string, isNumbered: boolean): string {
  const [number = '', sign = ':'] = /^(\d+)([:-])/.exec(text)?.slice(1) ?? []
  const line = text.slice(number.length + sign.length)
  return isNumbered ? `${path}${sign}${number}${sign}${line}` : `${path}${sign}${line}`
}
