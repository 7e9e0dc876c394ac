/** The result of a systemctl command. */
export interface Said {
  output: string
  orThrow(): void
}

/** Throws when there is no systemctl. */
export function systemctl(...args: string[]): Said {
  try {
    const { exitCode, stdout, stderr } = Bun.spawnSync(['systemctl', ...args], { stderr: 'pipe' })
    return {
      output: stdout
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

/** After this many failed starts, the next one will fail too. */
const RESTARTS = 3

/** True when the unit has failed, or restarts again and again. */
export function hasFailed(): boolean {
  const { output } = systemctl('show', '--property=ActiveState,NRestarts', 'threadbox')
  const values = new Map(output.split('\n').map(line => [line.split('=')[0], line.split('=')[1]]))
  return values.get('ActiveState') === 'failed' || Number(values.get('NRestarts')) >= RESTARTS
}

/** The server's last error in the journal, or else the last line there. Empty when there is no journal. */
export function findLastError(): string {
  try {
    const args = ['journalctl', '--unit=threadbox', '--lines=50', '--output=cat', '--no-pager']
    const lines = Bun.spawnSync(args, { stderr: 'ignore' }).stdout.toString().trim().split('\n')
    return lines.findLast(line => line.startsWith('threadbox: ')) ?? lines.at(-1) ?? ''
  } catch {
    return ''
  }
}
