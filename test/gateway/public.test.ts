import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { e2b } from '../../plugins/e2b/index.ts'
import { readE2bId } from '../../src/core/e2b/ids.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Engine, Plugin } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { openFaultyProxy } from '../support/faulty-proxy.ts'
import { startModelServer } from '../support/model-server.ts'
import { openThreadboxAsE2b, type ThreadboxAsE2b } from '../support/threadbox-as-e2b.ts'
import { chunksOf, say } from './public-chat.ts'

/** Where programs at E2B reach this server. 127.0.0.1 is their own sandbox. */
const PUBLIC_ADDRESS = '127.0.0.2'
const way = await openFaultyProxy(() => Number(new URL(app.url).port), PUBLIC_ADDRESS)
const publicUrl = way.url
const PNG = 'b"\\x89PNG\\r\\n\\x1a\\n" + b"0" * 8'

const model = startModelServer()
let outer: ThreadboxAsE2b
beforeAll(async () => {
  outer = await openThreadboxAsE2b({ flags: ['--network-private', PUBLIC_ADDRESS] })
}, 60_000)
/** What the last run had, and how its program fared. */
let token = ''
/** An engine that runs inside: a program there calls the model. */
const program: Engine = {
  name: 'program',
  async *run(_, { environment, openModel }) {
    const { insideBaseUrl, id, ...access } = openModel()
    token = access.token
    const body = JSON.stringify({ model: id, max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] })
    const script = [
      'import json, os, urllib.request as u',
      'r = u.Request(os.environ["URL"] + "/messages", os.environ["BODY"].encode(), {"x-api-key": os.environ["TOKEN"], "content-type": "application/json", "anthropic-version": "2023-06-01"})',
      'print(json.load(u.urlopen(r))["content"][0]["text"])',
    ].join('\n')
    const env = { URL: insideBaseUrl, TOKEN: access.token, BODY: body }
    const { stdout, stderr } = await runCommand(environment, { command: ['python3', '-c', script], env })
    yield { type: 'text', id: 'said', delta: stdout || stderr }
    return { status: 'completed' }
  },
}

const plugins = (): Plugin[] => [
  e2b({ connection: outer.variables, template: 'code-interpreter-v1', idleMs: 3_600_000, publicUrl }),
  { name: 'program', engine: () => program },
]
const models = ['--model', 'anthropic/claude-sonnet-4-6', '--backend', 'e2b']
const environment = {
  ANTHROPIC_API_KEY: 'sk-real-key',
  ANTHROPIC_BASE_URL: new URL(model.access('anthropic').baseUrl).origin,
}
const app = useApp([...models, '--public-url', publicUrl], environment, plugins)

// After the app's own end.
afterAll(async () => {
  await model.stop()
  await way.close()
  await outer.close()
}, 60_000)

beforeAll(() => {
  const options = { networkAllowOut: [PUBLIC_ADDRESS] }
  for (const engine of ['program', 'ai-sdk']) app.agent(engine, {}, { engine, options })
})

describe('a program at E2B', () => {
  test('calls its model by the public URL, metered', async () => {
    model.play({ text: 'From the model.' })
    const chunks = await chunksOf(app, 'program', say('Go.'))
    expect(chunks.find(({ type }) => type === 'text-delta')?.delta).toBe('From the model.\n')
    const { inputTokens, outputTokens } = chunks.find(({ type }) => type === 'message-metadata')?.messageMetadata ?? {}
    expect([inputTokens > 0, outputTokens > 0]).toEqual([true, true])
  })

  test('has nothing more once its run has ended, and keys of the API are nothing there', async () => {
    const ask = (key: string) =>
      fetch(`${app.url}/gateway/anthropic/v1/messages`, { method: 'POST', headers: { 'x-api-key': key }, body: '{}' })
    expect(token).toStartWith('tbr_')
    expect([(await ask(token)).status, (await ask(app.key)).status]).toEqual([401, 401])
  })
})

test('an agent runs code cells, and the model sees their charts', async () => {
  const code = `class Chart:\n  def _repr_png_(self): return ${PNG}\nprint("drawn")\nChart()`
  model.play({ calls: [{ name: 'RunCode', input: { code } }] }, { text: 'Seen.' })
  const chunks = await chunksOf(app, 'ai-sdk', say('Draw.'))
  const { output } = chunks.find(({ type }) => type === 'tool-output-available') ?? {}
  expect(output).toMatchObject([
    { type: 'text', text: expect.stringContaining('drawn') },
    { type: 'image', mediaType: 'image/png', data: expect.stringMatching(/^iVBORw0KGgo/) },
  ])
  const [first, second] = model.requests.slice(-2)
  expect(first?.tools).toContain('RunCode')
  expect(JSON.stringify(second?.body)).toContain('"media_type":"image/png"')
})

test('rules that change reach the sandbox before they are stored', async () => {
  const id = await app.sandbox({ networkAllowOut: ['a.com'] })
  const { sandboxId } = (await app.ask('GET', `/v1/sandboxes/${id}`)).body
  const there = `/v1/sandboxes/${readE2bId(outer.idOf(sandboxId))}`
  const allowed = async () => (await outer.app.ask('GET', there)).body.network.allowOut
  expect(await allowed()).toEqual(['a.com'])
  const { body } = await app.ask('PATCH', `/v1/sandboxes/${id}`, { networkAllowOut: ['b.com'] })
  expect([await allowed(), body.network.allowOut]).toEqual([['b.com'], ['b.com']])
  outer.proxy.answer = ({ path }) =>
    path.endsWith('/network') ? { status: 400, body: { code: 400, message: 'no' } } : undefined
  expect((await app.ask('PATCH', `/v1/sandboxes/${id}`, { networkAllowOut: ['c.com'] })).status).toBe(503)
  outer.proxy.answer = () => undefined
  expect((await app.ask('GET', `/v1/sandboxes/${id}`)).body.network.allowOut).toEqual(['b.com'])
})
