const KEPT_CHARACTERS = 4096
const KEPT_LINES = 6

const prefix = /^\[[A-Z]\]\[[^\]]*\]\[\d+\] (\w+\(\):\d+ )?/
/** Said of every jail that root starts for a probe. */
const usual = /^Process will be (UID|GID)/

/** The end of what nsjail said, without its dates, pids and places in its source. */
export function tailOf(log: string): string {
  const lines = log.slice(-KEPT_CHARACTERS).split('\n')
  const said = lines.map(line => line.replace(prefix, '')).filter(line => line !== '' && !usual.test(line))
  return said.slice(-KEPT_LINES).join('\n')
}
