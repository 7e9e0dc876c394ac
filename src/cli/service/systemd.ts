/** What systemctl said. */
export interface Said {
  said: string
  orThrow(): void
}

/** Throws when there is no systemctl. */
export function systemctl(...args: string[]): Said {
  try {
    const { exitCode, stdout, stderr } = Bun.spawnSync(['systemctl', ...args], { stderr: 'pipe' })
    return {
      said: stdout
        .toString()
        .trim()
        .replace(/^offline$/, ''),
      orThrow() {
        if (exitCode !== 0) throw new Error(`systemctl ${args.join(' ')}: ${stderr.toString().trim()}`)
      },
    }
  } catch {
    throw new Error('service: there is no systemctl here')
  }
}

/** After so many starts that ended by themselves, the next one will too. */
const RESTARTS = 3

/** True when the unit has failed, or starts over and over. */
export function hasFailed(): boolean {
  const { said } = systemctl('show', '--property=ActiveState,NRestarts', 'threadbox')
  const values = new Map(said.split('\n').map(line => [line.split('=')[0], line.split('=')[1]]))
  return values.get('ActiveState') === 'failed' || Number(values.get('NRestarts')) >= RESTARTS
}

/** What the server said last before it ended: its own words rather than systemd's. Empty where there is no journal. */
export function lastWords(): string {
  try {
    const args = ['journalctl', '--unit=threadbox', '--lines=50', '--output=cat', '--no-pager']
    const lines = Bun.spawnSync(args, { stderr: 'ignore' }).stdout.toString().trim().split('\n')
    return lines.findLast(line => line.startsWith('threadbox: ')) ?? lines.at(-1) ?? ''
  } catch {
    return ''
  }
}
