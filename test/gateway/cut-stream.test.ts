import { expect, test } from 'bun:test'
import { cleanUpAfterEach, cleanUpLater } from '../runs/support.ts'
import { call, gatewayScene, type WireCase, wireCases } from './support.ts'

cleanUpAfterEach()

const CUT = "The model's stream ended before its reply was complete."

/** Every event of a whole stream. */
async function eventsOf(wire: WireCase): Promise<string[]> {
  const { open } = gatewayScene()
  const text = await (await call(open({ model: wire.model }), wire, 'hi')).text()
  return text.split(/(?<=\n\n)/)
}

/** A gateway whose provider sends these bytes, and then ends, well or not. */
function sceneOf(text: string, ends: 'cleanly' | 'broken') {
  let isSent = false
  const body = () =>
    new ReadableStream({
      pull(controller) {
        if (!isSent && text !== '') controller.enqueue(Buffer.from(text))
        else if (ends === 'cleanly') controller.close()
        else controller.error(Object.assign(new Error('lost'), { code: 'ECONNRESET' }))
        isSent = true
      },
    })
  const answer = async () => new Response(body(), { headers: { 'content-type': 'text/event-stream' } })
  return gatewayScene({ fetch: Object.assign(answer, { preconnect: () => {} }) })
}

/** What a client reads, and how the answer ends for it. */
async function readAll(answer: Response): Promise<{ text: string; error?: string }> {
  let text = ''
  try {
    for await (const chunk of answer.body!) text += Buffer.from(chunk).toString()
    return { text }
  } catch (error) {
    return { text, error: (error as Error).message }
  }
}

for (const wire of wireCases) {
  test(`${wire.wire}: a stream that ends before its last event, or within one, is broken for its reader`, async () => {
    const events = await eventsOf(wire)
    const last = events.findLastIndex(event => /message_stop|"finish_reason":"stop"|completed"|STOP/.test(event))
    for (let index = 0; index <= last; index++) {
      const before = events.slice(0, index).join('')
      const half = events[index]!.slice(0, events[index]!.length / 2)
      for (const text of [before, before + half]) {
        for (const ends of ['cleanly', 'broken'] as const) {
          const { open, calls, log } = sceneOf(text, ends)
          const answer = await call(open({ model: wire.model }), wire, 'hi')
          expect(await readAll(answer)).toEqual({ text, error: CUT })
          expect(calls()).toMatchObject([{ status: 'failed' }])
          expect(calls()[0]!.inputTokens).toBeGreaterThan(0)
          expect(log.join()).toContain('ended its stream before the reply was complete')
        }
      }
    }
  })

  test(`${wire.wire}: a stream that breaks after its last event is whole`, async () => {
    const text = (await eventsOf(wire)).join('')
    const { open, calls } = sceneOf(text, 'broken')
    expect(await readAll(await call(open({ model: wire.model }), wire, 'hi'))).toEqual({ text })
    expect(calls()).toMatchObject([{ status: 'completed', outputTokens: 25 }])
  })
}

test('a prompt that Gemini refuses has its whole answer in one event', async () => {
  const text = 'data: {"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":7}}\n\n'
  const { open, calls } = sceneOf(text, 'cleanly')
  const answer = await call(open({ model: 'gemini/gemini-2.5-flash' }), wireCases[3]!, 'hi')
  expect(await readAll(answer)).toEqual({ text })
  expect(calls()).toMatchObject([{ status: 'completed', inputTokens: 7 }])
})

test('a stream without a body can be asked for again', async () => {
  const answer = async () => new Response(null, { headers: { 'content-type': 'text/event-stream' } })
  const { open, calls } = gatewayScene({ fetch: Object.assign(answer, { preconnect: () => {} }) })
  const got = await call(open(), wireCases[0]!, 'hi')
  expect([got.status, got.headers.get('x-should-retry')]).toEqual([502, 'true'])
  expect(await got.text()).toContain(CUT)
  expect(calls()).toMatchObject([{ status: 'failed' }])
})

test('a program that asks by the public URL sees the connection break', async () => {
  const { open, gateway } = sceneOf((await eventsOf(wireCases[0]!)).slice(0, 4).join(''), 'cleanly')
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    development: false,
    fetch: request => gateway.handle(request, 'public'),
  })
  cleanUpLater(() => server.stop(true))
  const { access } = open({ inside: { environmentId: 'env_1', via: 'public' } })
  const asking = fetch(`${server.url.origin}/gateway/anthropic/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': access.token },
    body: JSON.stringify(wireCases[0]!.body('hi')),
  }).then(answer => answer.text())
  await expect(asking).rejects.toMatchObject({ code: 'ECONNRESET' })
})
