import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Sandbox } from 'e2b'
import { beginEnvironment } from '../../src/db/environments.ts'
import { openDatabase } from '../../src/db/open.ts'
import { command, patiently, Server } from '../support/server.ts'
import { openThreadboxAsE2b, type ThreadboxAsE2b } from '../support/threadbox-as-e2b.ts'
import { until } from '../support/until.ts'

patiently()

let e2b: ThreadboxAsE2b
let server: Server
beforeAll(async () => {
  e2b = await openThreadboxAsE2b()
  server = await new Server({ flags: ['--backend', 'e2b'], env: e2b.variables }).start()
})
afterAll(async () => {
  await server.close()
  await e2b.close()
})

const sleepers = async (sandboxId: string, mark: string) =>
  Number(
    (
      await server.exec(
        sandboxId,
        `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep -c '^sleep ${mark} $'`,
      )
    ).stdout,
  )

test('a server that was killed finds its sandboxes, with what was left in them and without what was under way', async () => {
  const id = await server.sandbox()
  await server.exec(id, 'echo kept > f; sleep 7501 > /dev/null 2>&1 &')
  const running = server.exec(id, 'setsid sleep 7502 & sleep 7502').catch(() => 'cut')
  await until(async () => (await sleepers(id, '7502')) === 2)
  await server.kill()
  expect(await running).toBe('cut')
  await server.start()
  expect((await server.exec(id, 'cat f')).stdout).toBe('kept\n')
  expect([await sleepers(id, '7501'), await sleepers(id, '7502')]).toEqual([1, 0])
  expect(e2b.sandboxes().size).toBe(1)
})

test('a sandbox whose row was never written is removed at the next start', async () => {
  const id = await server.sandbox()
  const [known = ''] = e2b.sandboxes().values()
  const { metadata } = await Sandbox.getInfo(known, e2b.options)
  await server.stop()
  // As a crash leaves one between its making and its row: it is noted that it was begun.
  const environmentId = 'env_00000000-0000-7000-8000-000000000000'
  const db = openDatabase(join(server.dataDirectory, 'threadbox.db'))
  beginEnvironment(db, { environmentId, backend: 'e2b' })
  db.close()
  await Sandbox.create('base', {
    ...e2b.options,
    metadata: { threadbox: metadata.threadbox!, threadboxEnvironment: environmentId },
  })
  await server.start()
  await until(() => !e2b.sandboxes().has(environmentId))
  expect((await server.exec(id, 'echo still')).stdout).toBe('still\n')
})

test('the doctor says what is missing', async () => {
  const { code, stdout } = await command(['doctor', '--backend', 'e2b', '--data-dir', `${server.dataDirectory}-doctor`])
  expect([code, stdout]).toEqual([1, expect.stringContaining('start with E2B_API_KEY, a key of your E2B project')])
})
