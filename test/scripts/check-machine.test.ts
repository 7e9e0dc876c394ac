import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const script = join(import.meta.dir, '../../scripts/check-machine')
const bin = mkdtempSync(join(tmpdir(), 'threadbox-machine-'))
afterAll(() => rmSync(bin, { recursive: true }))

/** What the script says on a machine whose programs answer like this. */
function check(answers: Record<string, string>) {
  for (const [name, answer] of Object.entries(answers)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${answer}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const { exitCode, stderr } = Bun.spawnSync([script], { env: { PATH: `${bin}:/usr/bin:/bin` } })
  return { exitCode, stderr: stderr.toString() }
}

const machine = (kernel: string, architecture: string, glibc: string) => ({
  uname: `[ "$1" = -r ] && echo ${kernel} || echo ${architecture}`,
  getconf: `echo glibc ${glibc}`,
})

const rows: [string, Record<string, string>, string[]][] = [
  ['one that has all', machine('6.1.0-18-amd64', 'x86_64', '2.36'), []],
  ['the oldest that will do', machine('5.19.0', 'x86_64', '2.34'), []],
  ['an old kernel', machine('5.15.0-91-generic', 'x86_64', '2.35'), ['Linux 5.19 or newer', '5.15.0-91-generic']],
  ['another processor', machine('6.1.0', 'aarch64', '2.36'), ['an nsjail in PATH', 'aarch64']],
  ['an old C library', machine('6.1.0', 'x86_64', '2.31'), ['glibc 2.34 or newer', 'has 2.31']],
  ['another C library', { ...machine('6.1.0', 'x86_64', ''), getconf: 'exit 1' }, ['another C library']],
  ['two faults', machine('4.19.0', 'x86_64', '2.28'), ['Linux 5.19', 'glibc 2.34']],
]

test.each(rows)('says what a machine lacks before anything is built: %s', (_, answers, wanted) => {
  const { exitCode, stderr } = check(answers)
  expect(exitCode).toBe(wanted.length > 0 ? 1 : 0)
  if (wanted.length === 0) expect(stderr).toBe('')
  for (const words of wanted) expect(stderr).toContain(words)
})
