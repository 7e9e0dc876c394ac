import { beforeAll, expect, test } from 'bun:test'
import { createLineIds } from '../../src/core/observe/line-ids.ts'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const app = useApp()
const ids = createLineIds()
beforeAll(() => ids.learn(app.runtime))

test('a line about a run, or about an environment, has the ids of all around it', async () => {
  const answered = await app.request('POST', '/v1/chat/echo', { body: { messages: [say('a')] } })
  await answered.text()
  const header = (name: string) => answered.headers.get(name)
  const [runId, sandboxId, threadId] = [header('x-run-id'), header('x-sandbox-id'), header('x-thread-id')]
  const { teamId, environmentId } = app.runtime.db
    .query<any, any>('select team_id as teamId, environment_id as environmentId from sandboxes where id = ?')
    .get(sandboxId)
  const requestId = header('x-request-id')
  expect(ids.of(`${runId}: something`)).toEqual({ runId, sandboxId, threadId, teamId, requestId } as any)
  expect(ids.of(`network ${environmentId}: allowed a.example port 443`)).toEqual({ sandboxId, teamId } as any)
  expect(ids.of('POST /v1/chat/echo 200 3 ms', { requestId: requestId! })).toEqual({ requestId, teamId } as any)
  expect(ids.of('nothing in particular')).toEqual({})
})

test('each line of the log is an object of JSON, without what is secret', async () => {
  await using server = await startServer({ flags: ['--log', 'json', '--log-level', 'debug', '--spares', '0'] })
  const made = await server.request('POST', '/v1/sandboxes', { body: { agent: 'echo', envs: { WORD: 'secret-word' } } })
  const { id } = (await made.json()) as any
  const ran = await server.request('POST', `/v1/sandboxes/${id}/exec`, { body: { command: 'echo secret-word' } })
  await ran.text()
  await server.request('GET', '/v1/sandboxes', { key: 'tbx_not-a-key' })
  const written = () =>
    server.stderr
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line))
  await until(() => written().some(({ message }) => message.startsWith('GET /v1/sandboxes 401')))
  const lines = written()
  for (const line of lines)
    expect(line).toEqual(
      expect.objectContaining({ time: expect.any(String), level: expect.any(String), message: expect.any(String) }),
    )
  const exec = lines.find(({ message }) => message.includes('/exec 200 '))
  expect(exec).toMatchObject({ level: 'debug', sandboxId: id, requestId: ran.headers.get('x-request-id') })
  expect(exec.teamId).toMatch(/^team_/)
  expect(lines.some(({ message }) => message.includes('The API key is not known'))).toBe(true)
  expect(server.stderr).not.toMatch(/secret-word|tbx_/)
})
