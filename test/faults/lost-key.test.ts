import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '../support/client.ts'
import { command, useServer } from '../support/server.ts'

const server = useServer()
const keyFile = () => join(server.dataDirectory, 'threadbox.key')

test('a server without the key of what is encrypted does not start, says which, and makes no other', async () => {
  await server.sandbox({ envs: { SECRET: 'one' } })
  await server.stop()
  const key = readFileSync(keyFile())
  rmSync(keyFile())
  await expect(server.start()).rejects.toThrow(
    /threadbox\.key is missing.*1 with key [0-9a-f]{8}.*Put that key file back/,
  )
  expect(existsSync(keyFile())).toBe(false)
  const agent = join(server.dataDirectory, 'agent.json')
  writeFileSync(agent, JSON.stringify({ slug: 'a', engine: 'echo', sandbox: { envs: { A: 'b' } } }))
  const applied = await command(['agents', 'apply', agent, '--data-dir', server.dataDirectory])
  expect(applied).toMatchObject({ code: 1, stderr: expect.stringContaining('threadbox.key is missing') })
  expect(existsSync(keyFile())).toBe(false)

  writeFileSync(keyFile(), `${Buffer.alloc(32, 7).toString('base64')}\n`)
  await expect(server.start()).rejects.toThrow(/is key [0-9a-f]{8}, but .* were encrypted with another/)
  writeFileSync(keyFile(), key)
  await server.start()
})

test('one row that cannot be read fails itself alone, and can be deleted', async () => {
  const [broken, whole] = [await server.sandbox({ envs: { A: '1' } }), await server.sandbox({ envs: { A: '2' } })]
  const db = new Database(join(server.dataDirectory, 'threadbox.db'))
  db.run(`update sandboxes set envs = 'sealed:00000000:' || substr(envs, 17) where id = '${broken}'`)
  db.close()
  await server.stop()
  await server.start()
  expect(server.stderr).toContain('1 with key 00000000')
  const { status, body } = await server.ask('GET', '/v1/sandboxes')
  expect(status).toBe(200)
  expect(body.sandboxes.map(({ id }: { id: string }) => id)).toContain(broken)
  expect((await server.exec(whole, 'echo $A')).stdout).toBe('2\n')
  expect((await server.ask('GET', `/v1/sandboxes/${broken}`)).status).toBe(200)
  const refused = await server.ask('POST', `/v1/sandboxes/${broken}/exec`, { command: 'true' })
  expect(refused).toMatchObject({ status: 503, body: { error: { code: 'sandbox_unavailable' } } })
  expect((await server.ask('DELETE', `/v1/sandboxes/${broken}`)).status).toBe(204)
})

test('a version that cannot be read is in nobody’s way but its own', async () => {
  const path = '/v1/agents/echo/definition'
  const { revision, definition } = (await server.ask('GET', path)).body
  const changed = { ...definition, model: 'two' }
  expect((await server.ask('PUT', path, { revision, definition: changed })).body.version).toBe(2)
  const pinned = await server.sandbox()
  const db = new Database(join(server.dataDirectory, 'threadbox.db'))
  db.run("update deployments set definition = 'sealed:00000000:' || substr(definition, 17) where version = 2")
  db.close()
  expect(codeOf(await server.ask('GET', `${path}?version=2`))).toBe('503 sandbox_unavailable')
  expect((await server.exec(await server.sandbox(), 'echo a')).stdout).toBe('a\n')
  expect((await server.ask('POST', '/v1/agents/echo/rollback', {})).body.version).toBe(1)
  expect(codeOf(await server.ask('POST', '/v1/agents/echo/rollback', { version: 2 }))).toBe('503 sandbox_unavailable')
  const messages = [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }]
  const chat = await server.ask('POST', '/v1/chat/echo', { sandboxId: pinned, messages })
  expect(codeOf(chat)).toBe('503 sandbox_unavailable')
})
