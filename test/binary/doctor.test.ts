import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { leftovers } from '../support/leftovers.ts'
import { command, patiently, temporaryDirectory } from '../support/server.ts'

patiently()

let directory = ''
beforeAll(() => {
  directory = temporaryDirectory()
})
afterAll(() => rmSync(directory, { recursive: true }))

test('doctor tries what serve needs, and says that it will start', async () => {
  const dataDirectory = join(directory, 'good')
  const { code, stdout, stderr } = await command(['doctor', '--data-dir', dataDirectory])
  expect([code, stderr]).toEqual([0, ''])
  const [checks = '', verdict] = stdout.trimEnd().split('\n\n')
  expect(verdict).toBe('serve will start.')
  for (const name of ['isolation', 'nsjail', 'overlay', 'seccomp', 'transparent network'])
    expect(checks).toMatch(new RegExp(`^ok +${name}: .`, 'm'))
  for (const line of checks.split('\n')) expect(line).toMatch(/^(ok|missing) +\S.*: .|^ +remedy: ./)
  expect(await leftovers(`${dataDirectory}/`)).toEqual([])
})

test('doctor and serve refuse a broken nsjail, with what it is and what to do', async () => {
  const args = ['--nsjail-path', '/none', '--data-dir', join(directory, 'bad')]
  const examined = await command(['doctor', ...args])
  expect([examined.code, examined.stderr]).toEqual([1, ''])
  expect(examined.stdout).toMatch(/^FAILED +nsjail: .+\n +remedy: ./m)
  expect(examined.stdout).toContain('\nserve will not start: nsjail')
  const { code, stdout, stderr } = await command(['serve', '--port', '0', ...args])
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/^threadbox: FAILED +nsjail: .+\n +remedy: ./)
  expect(stderr).toContain('see: threadbox doctor')
})
