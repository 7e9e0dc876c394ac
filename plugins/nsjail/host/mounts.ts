import { readFileSync } from 'node:fs'

/** Lists the mount points below a directory of the host, without the directory itself. */
export function listMountsBelow(directory: string): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return lines.map(line => unescapePath(line.split(' ')[4] ?? '')).filter(path => path.startsWith(`${directory}/`))
}

/** The kernel writes spaces, tabs, line feeds and backslashes in octal. */
const unescapePath = (path: string) =>
  path.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
