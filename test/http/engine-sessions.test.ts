import { beforeAll, expect, test } from 'bun:test'
import type { Engine, Turn } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'
import { readChunks } from '../support/sse.ts'

const turns: Turn[] = []

/** Keeps a session, as programs do that remember the conversation themselves. */
const engine: Engine = {
  name: 'rememberer',
  async *run(turn) {
    turns.push(turn)
    yield { type: 'session', engineSessionId: `session-${turns.length}` }
    yield { type: 'text', id: 't', delta: 'Noted.' }
    return { status: 'completed' }
  },
}

const app = useApp([], {}, () => [{ name: engine.name, engine: () => engine }])
beforeAll(() => app.agent('rememberer', {}, { engine: engine.name }))

test('what is taken back is taken from the engine’s own session too', async () => {
  const sandboxId = await app.sandbox({ agent: 'rememberer' })
  let threadId: string | null = null
  const turnOf = async (fields: object) => {
    const body = { sandboxId, ...(threadId && { threadId }), ...fields }
    const response = await app.request('POST', '/v1/chat/rememberer', { body })
    threadId = response.headers.get('x-thread-id')
    await readChunks(response)
    const { engineSessionId, history } = turns.at(-1)!
    return [engineSessionId, history.length]
  }
  expect(await turnOf({ messages: [say('one', 'm1')] })).toEqual([undefined, 0])
  expect(await turnOf({ messages: [say('two', 'm2')] })).toEqual(['session-1', 2])
  expect(await turnOf({ messages: [say('2', 'm2')], messageId: 'm2' })).toEqual([undefined, 2])
  expect(await turnOf({ messages: [say('three', 'm3')] })).toEqual(['session-3', 4])
  expect(await turnOf({ messages: [say('three', 'm3')], trigger: 'regenerate-message' })).toEqual([undefined, 4])
  expect(await turnOf({ messages: [say('four', 'm4')] })).toEqual(['session-5', 6])
})
