const KEPT_CHARACTERS = 4096
const KEPT_LINES = 6

/** The end of what nsjail said, without its dates, pids and places in its source. */
export function lastWords(log: string): string {
  const lines = log.slice(-KEPT_CHARACTERS).split('\n').filter(Boolean).slice(-KEPT_LINES)
  return lines.map(line => line.replace(/^\[[A-Z]\]\[[^\]]*\]\[\d+\] (\w+\(\):\d+ )?/, '')).join('\n')
}
