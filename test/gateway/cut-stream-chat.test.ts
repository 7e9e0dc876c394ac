import { afterAll, beforeAll, expect, test } from 'bun:test'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Engine } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { startModelServer } from '../support/model-server.ts'
import { eventsOf } from '../support/sse.ts'
import { chunksOf, say } from './public-chat.ts'

const CUT = "The model's stream ended before its reply was complete."

const model = startModelServer()
afterAll(() => model.stop())

/** What curl says of an answer in chunks that has no last one. */
const CURL_PARTIAL = 18

/** An engine whose program calls the model by itself. */
const program: Engine = {
  name: 'program',
  async *run(_, { environment, openModel }) {
    const { id, insideBaseUrl, token } = openModel()
    const messages = [{ role: 'user', content: 'Hello' }]
    const body = JSON.stringify({ model: id, max_tokens: 100, stream: true, messages })
    const command = ['curl', '-sSN', `${insideBaseUrl}/messages`, '-H', `x-api-key: ${token}`, '-d', body]
    const { stdout, exitCode } = await runCommand(environment, { command })
    yield { type: 'text', id: 'said', delta: JSON.stringify({ exitCode, hasWords: stdout.includes('One two') }) }
    return { status: 'completed' }
  },
}

const app = useApp(
  ['--model', 'anthropic/claude-sonnet-4-6'],
  { ANTHROPIC_API_KEY: 'sk-real-key', ANTHROPIC_BASE_URL: new URL(model.access('anthropic').baseUrl).origin },
  () => [{ name: 'program', engine: () => program }],
)
beforeAll(() => {
  for (const engine of ['program', 'ai-sdk']) app.agent(engine, {}, { engine })
})

test('a reply whose stream ends too early has failed, says why, and is kept as far as it came', async () => {
  const shown = Promise.withResolvers<void>()
  model.play({ text: 'One two three.', cutAfter: shown.promise, ending: 'cut' })
  const response = await app.request('POST', '/v1/chat/ai-sdk', { body: { messages: [say('Go.')] } })
  const ids = { sandbox: response.headers.get('x-sandbox-id'), thread: response.headers.get('x-thread-id') }
  const chunks: any[] = []
  for await (const { data } of eventsOf(response)) {
    chunks.push(data)
    if (data.type === 'text-delta') shown.resolve()
  }
  expect(chunks.find(({ type }) => type === 'error')).toEqual({ type: 'error', errorText: CUT })
  const { body: thread } = await app.ask('GET', `/v1/sandboxes/${ids.sandbox}/threads/${ids.thread}`)
  expect(thread.status).toBe('error')
  expect(JSON.stringify(thread.messages)).toContain('One two')
})

test('a program in a sandbox sees the stream break', async () => {
  model.play({ text: 'One two three, four five six, seven eight.', endsAfter: 5 })
  const chunks = await chunksOf(app, 'program', say('Go.'))
  const said = chunks.find(({ type }) => type === 'text-delta')?.delta ?? '{}'
  expect(JSON.parse(said)).toEqual({ exitCode: CURL_PARTIAL, hasWords: true })
})
