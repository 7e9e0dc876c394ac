import { describe, expect, test } from 'bun:test'
import { join, relative } from 'node:path'
import { dice, seed } from '../faults/random.ts'
import { processesNamed } from '../support/leftovers.ts'
import { until } from '../support/until.ts'
import { useOneOffs } from './support.ts'

const oneOffs = useOneOffs()
const roll = dice(seed)

const nothing = () => until(async () => (await oneOffs.left()).length === 0, 'nothing is left')
const guards = () => processesNamed('guard').length

/** What runs, and what its end must end. */
const commands: [string, string[]][] = [
  ['exec', ['exec', '--', 'echo up; setsid sleep 7451 & sleep 7451']],
  ['run', ['run', '--agent', 'echo', 'up\n$ setsid sleep 7451 & sleep 7451']],
]

describe.each(commands)('%s', (_, args) => {
  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGKILL', 137],
  ] as const)('leaves nothing after %s', async (signal, code) => {
    const child = oneOffs.spawn(args)
    await until(() => processesNamed('7451').length >= 2)
    child.kill(signal)
    expect(await child.exited).toBe(code)
    if (signal === 'SIGKILL') await nothing()
    expect(await oneOffs.left()).toEqual([])
    expect(processesNamed('7451')).toEqual([])
    await until(() => guards() === 0)
  })
})

test('leaves nothing of a backend of a plugin, however its file is named', async () => {
  const file = relative(oneOffs.directory, join(import.meta.dir, '../plugins/jails.ts'))
  const child = oneOffs.spawn(['exec', '--plugin', file, '--backend', 'jails', '--', 'sleep 7453 & sleep 7453'])
  await until(() => processesNamed('7453').length >= 2)
  child.kill('SIGKILL')
  await nothing()
  expect(processesNamed('7453')).toEqual([])
})

test('ends when nobody reads its output any more', async () => {
  const child = oneOffs.spawn(['exec', '--', 'yes'])
  const reader = child.stdout.getReader()
  await reader.read()
  await reader.cancel()
  expect([await child.exited, await child.stderr.text()]).toEqual([141, ''])
  expect(await oneOffs.left()).toEqual([])
})

const moments = Array.from({ length: 8 }, () => [roll(250)])

test.each(moments)(`killed after %i ms, it leaves nothing (seed ${seed})`, async ms => {
  const child = oneOffs.spawn(['exec', '--', 'sleep 7452'])
  await Bun.sleep(ms)
  child.kill('SIGKILL')
  await child.exited
  await until(() => guards() === 0, 'the guard is done')
  expect(await oneOffs.left()).toEqual([])
  expect(processesNamed('7452')).toEqual([])
})
