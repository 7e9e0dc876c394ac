import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findLastStart } from '../../src/core/sandboxes/spares/last-start.ts'
import { listStrays, listUnfinished } from '../../src/db/environments.ts'
import type { Limits } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { leftovers, readText } from '../support/leftovers.ts'
import { until } from '../support/until.ts'

const SPARES = 2
const app = useApp(['--spares', `${SPARES}`])
const scratch = mkdtempSync(join(tmpdir(), 'threadbox-spares-'))
beforeAll(() => app.runtime.spares.start(findLastStart(app.runtime)))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const stood = () => app.log.flatMap(line => /^(\S+) stands ready as a spare$/.exec(line)?.[1] ?? [])
const nsjail = () => app.runtime.backends.get('nsjail')!

/** Waits until all spares are of one kind, which was asked for as often as there are spares. */
async function ready(isSo: (record: { base: string; limits: Limits }) => boolean = isPlain): Promise<string[]> {
  const { body } = await app.ask('GET', '/v1/sandboxes?limit=200')
  const used = body.sandboxes.map(({ sandboxId }: { sandboxId: string }) => sandboxId)
  let present: string[] = []
  await until(async () => {
    const environments = await nsjail().list()
    present = stood().filter(id => environments.includes(id) && !used.includes(id))
    return present.length === SPARES && present.every(id => isSo(recordOf(id)))
  }, `${SPARES} spares`)
  return present
}

const isSpare = (id: string) => existsSync(join(app.directory, 'sandboxes', id, 'spare'))

function recordOf(id: string) {
  const text = readText(join(app.directory, 'sandboxes', id, 'meta.json'))
  return text === '' ? { base: '', limits: {} } : JSON.parse(text)
}

const isPlain = ({ base, limits }: { base: string; limits: Limits }) =>
  base.startsWith(app.directory) && Bun.deepEquals(limits, app.runtime.config.limits)

async function readyForEcho(): Promise<string[]> {
  for (let left = SPARES; left > 0; left--) await create()
  return ready()
}

const create = async (fields: object = {}) =>
  (await app.ask('POST', '/v1/sandboxes', { agent: 'echo', ...fields })).body

/** A root file system of one program. */
function makeBase(name: string): string {
  const root = join(scratch, name)
  mkdirSync(join(root, 'bin'), { recursive: true })
  chmodSync(scratch, 0o755)
  copyFileSync(Bun.which('busybox') ?? '', join(root, 'bin/busybox'))
  for (const each of ['sh', 'cat', 'true']) symlinkSync('busybox', join(root, 'bin', each))
  writeFileSync(join(root, 'name'), name)
  return root
}

test('a create takes an environment that stands ready, and that no list shows before', async () => {
  const spares = await ready()
  const { body: before } = await app.ask('GET', '/v1/sandboxes')
  const strays = await app.beside(db => listStrays(db))
  for (const id of spares) expect(JSON.stringify([before, strays])).not.toContain(id)
  const made = await create({ envs: { COLOUR: 'blue' }, files: { '/home/user/a.txt': 'one' }, setup: ['echo two >b'] })
  expect(spares).toContain(made.sandboxId)
  expect(await app.shell(made.id, 'cat a.txt b; echo $COLOUR')).toBe('onetwo\nblue\n')
})

test('a sandbox that was a spare is as one that was made for its create', async () => {
  app.agent('other', { limits: { cpus: 1 } })
  const made = await create({ agent: 'other' })
  const spares = await readyForEcho()
  const taken = await create()
  expect([spares.includes(taken.sandboxId), spares.includes(made.sandboxId)]).toEqual([true, false])
  const look =
    "id; env | sort; hostname; pwd; find / ~ /tmp -maxdepth 1 -printf '%M %u %g %p %l\\n' | sort; df --output=size /; ps -e -o args="
  expect(await app.shell(taken.id, look)).toBe(await app.shell(made.id, look))
  const isolation = async ({ id }: { id: string }) =>
    (await app.ask('GET', `/v1/sandboxes/${id}`)).body.isolation.details
  const plain = (lines: string[]) => lines.map(line => line.replace(/\d+ to \d+/, '').replace(/^cpu: .*/, 'cpu'))
  expect(plain(await isolation(taken))).toEqual(plain(await isolation(made)))
})

test('many creates at once take each spare once', async () => {
  const spares = await readyForEcho()
  const made = await Promise.all(Array.from({ length: 8 }, () => create()))
  const ids = made.map(({ sandboxId }) => sandboxId)
  expect(new Set(ids).size).toBe(8)
  expect(ids.filter(id => spares.includes(id)).sort()).toEqual([...spares].sort())
})

test('a create with other limits or another base gets none of them', async () => {
  app.agent('smaller', { limits: { memoryMb: 512 } })
  app.agent('busybox', { base: makeBase('one') })
  const spares = await readyForEcho()
  for (const agent of ['smaller', 'busybox']) expect(spares).not.toContain((await create({ agent })).sandboxId)
})

test('what was asked for lately is what stands ready next', async () => {
  app.agent('little', { limits: { memoryMb: 256 } })
  const [first, second] = [await create({ agent: 'little' }), await create({ agent: 'little' })]
  const spares = await ready(({ limits }) => limits.memoryMb === 256)
  const third = await create({ agent: 'little' })
  expect([first, second, third].map(({ sandboxId }) => spares.includes(sandboxId))).toEqual([false, false, true])
  expect((await app.ask('GET', `/v1/sandboxes/${third.id}`)).body.isolation.details).toContain('memory: 256 MB')
})

test('a create that fails after it took a spare leaves nothing of it, and the spare goes to nobody else', async () => {
  const spares = await readyForEcho()
  const failed = await Promise.all(
    spares.map(() => app.ask('POST', '/v1/sandboxes', { agent: 'echo', setup: ['exit 7'] })),
  )
  expect(failed.map(codeOf)).toEqual(spares.map(() => '400 setup_failed'))
  expect(await leftovers(...spares)).toEqual([])
  expect(spares).not.toContain((await create()).sandboxId)
})

test('a spare that has stopped is given to nobody, and another takes its place', async () => {
  const spares = await readyForEcho()
  for (const id of spares) await (await nsjail().open(id))?.pause?.()
  const { id, sandboxId } = await create()
  expect(spares).not.toContain(sandboxId)
  expect(await app.shell(id, 'echo fine')).toBe('fine\n')
  const [next = ''] = (await readyForEcho()).filter(each => !spares.includes(each))
  expect(next).toStartWith('env_')
  await until(async () => (await leftovers(...spares)).length === 0)
})

test('a spare whose base was replaced is given to nobody', async () => {
  const base = makeBase('old')
  app.agent('based', { base })
  for (let left = SPARES; left > 0; left--) await create({ agent: 'based' })
  const spares = await ready(each => each.base === base)
  renameSync(base, join(scratch, 'former'))
  renameSync(makeBase('new'), base)
  const { id, sandboxId } = await create({ agent: 'based' })
  expect(spares).not.toContain(sandboxId)
  expect(await app.shell(id, 'cat /name')).toBe('new')
})

test('while memory is short there are fewer spares, or none', async () => {
  const count = () => readdirSync(join(app.directory, 'sandboxes')).filter(isSpare).length
  await readyForEcho()
  expect(count()).toBe(SPARES)
  const memory = spyOn(process, 'availableMemory').mockReturnValue(100 * 1024 * 1024)
  await create()
  await until(() => count() === 0)
  memory.mockReturnValue(290 * 1024 * 1024)
  await create()
  await until(() => count() === 1)
  memory.mockRestore()
  await readyForEcho()
})

test('spares make no connection and keep nothing of their trial', async () => {
  await readyForEcho()
  const { id } = await create()
  expect((await app.ask('GET', `/v1/sandboxes/${id}/processes`)).body.processes).toEqual([])
  expect((await app.ask('GET', `/v1/sandboxes/${id}`)).body.network.decisions).toEqual({ allowed: 0, refused: 0 })
})

test('when the server ends, its spares are gone', async () => {
  const spares = await readyForEcho()
  await app.runtime.spares.close()
  expect(await leftovers(...spares)).toEqual([])
  expect(app.beside(db => listUnfinished(db, 'nsjail'))).toEqual([])
  expect(spares).not.toContain((await create()).sandboxId)
})
