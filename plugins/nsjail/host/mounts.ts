import { readFileSync } from 'node:fs'

/** What is mounted below a directory of the host, itself not counted. */
export function listMountsBelow(directory: string): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return lines.map(line => plain(line.split(' ')[4] ?? '')).filter(path => path.startsWith(`${directory}/`))
}

/** The kernel writes spaces, tabs, line feeds and backslashes in octal. */
const plain = (path: string) =>
  path.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
