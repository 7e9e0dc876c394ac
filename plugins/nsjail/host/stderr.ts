const KEPT_CHARACTERS = 4096
const KEPT_LINES = 6

const prefix = /^\[[A-Z]\]\[[^\]]*\]\[\d+\] (\w+\(\):\d+ )?/
/** nsjail prints these for every jail that root starts for a probe. */
const usual = /^Process will be (UID|GID)/

/** The last lines of a program's stderr, without nsjail's dates, pids and source lines. */
export function tailOf(log: string): string {
  const lines = log.slice(-KEPT_CHARACTERS).split('\n')
  const kept = lines.map(line => line.replace(prefix, '')).filter(line => line !== '' && !usual.test(line))
  return kept.slice(-KEPT_LINES).join('\n')
}
