import { beforeAll, describe, expect, test } from 'bun:test'
import { processesNamed } from '../support/leftovers.ts'
import { useServer } from '../support/server.ts'
import { eventsOf, readEvents, type ServerSentEvent, textIn, typesIn } from '../support/sse.ts'
import { until } from '../support/until.ts'
import { leaveCounter, visitCounter } from './background.ts'
import { dice, seed } from './random.ts'

// A killed server's spare is swept by the next start, which this may stop before.
const server = useServer({ flags: ['--spares', '0'] })
let sandboxId = ''
let visits = 0
beforeAll(async () => {
  sandboxId = await server.sandbox()
  await leaveCounter(server, sandboxId)
  console.log(`seed ${seed}: THREADBOX_TEST_SEED=${seed} bun test test/faults/kill.test.ts`)
})

/** A reply of text, a tool call, text, and a tool call that does not end by itself. */
const question = (nap: string) => `/slow 6\n$ echo one\n/slow 6\n$ sleep ${nap}`

const slowText = (id: string) => [
  { type: 'text-start', id },
  ...Array.from({ length: 6 }, (_, index) => ({ type: 'text-delta', id, delta: `${index + 1} ` })),
  { type: 'text-end', id },
]

const toolCall = (toolCallId: string, command: string) => [
  { type: 'tool-input-start', toolCallId, toolName: 'Bash', providerExecuted: true },
  { type: 'tool-input-available', toolCallId, toolName: 'Bash', input: { command }, providerExecuted: true },
]

/** Every chunk that the reply comes to by itself. */
const reply = (nap: string) => [
  { type: 'start' },
  ...slowText('text-1'),
  ...toolCall('call-1', 'echo one'),
  { type: 'tool-output-available', toolCallId: 'call-1', output: 'one\n', providerExecuted: true },
  { type: 'start-step' },
  ...slowText('text-2'),
  ...toolCall('call-2', `sleep ${nap}`),
]

const stopped = 'The server stopped during this reply.'

/** What closes the part that is open after these. A tool call is stored as a whole. */
function closingOf(chunks: any[]): object[] {
  const { type, id, toolCallId } = chunks.at(-1)
  if (type === 'text-start' || type === 'text-delta') return [{ type: 'text-end', id }]
  if (type === 'tool-input-available')
    return [{ type: 'tool-output-error', toolCallId, errorText: stopped, providerExecuted: true }]
  if (type === 'tool-output-available') return [{ type: 'start-step' }]
  return []
}

const roll = dice(seed)
const length = reply('').length
const kills = Array.from({ length: 20 }, (_, index) => ({
  nap: `4321.${seed}${index + 1}`,
  // The last chunk is where a command is under way: one kill in five or so is there.
  chunk: Math.min(roll(length + 5), length),
  /** Where another reader, who had lost its connection before, goes on. */
  earlier: roll(length) - 1,
}))

describe.each(kills)('killed at chunk $chunk', ({ nap, chunk, earlier }) => {
  test('nothing is lost, doubled or left running, and the chat goes on', async () => {
    const response = await server.chat(question(nap), { sandboxId })
    const runId = response.headers.get('x-run-id')!
    const threadId = response.headers.get('x-thread-id')!
    const seen = await readUntilLost(response, async ({ length }) => {
      if (length !== chunk) return
      if (chunk === reply(nap).length) await until(() => processesNamed(nap).length > 0)
      await server.kill()
    })
    expect(seen.length).toBeGreaterThanOrEqual(chunk)

    await server.start()
    const resume = (last: number) => {
      const headers = { 'last-event-id': `${runId}/${last}` }
      return server.request('GET', `/v1/chat/echo/${sandboxId}/stream`, { headers })
    }
    const all = [...seen, ...(await readEvents(await resume(seen.length)))]
    expect(all.map(({ id }) => id)).toEqual(all.map((_, index) => `${runId}/${index + 1}`))
    const chunks = all.map(({ data }) => data)
    const metadata = chunks.findIndex(({ type }) => type === 'message-metadata')
    const said = reply(nap).filter((each, index) => index < metadata && Bun.deepEquals(each, chunks[index]))
    expect(said.length).toBeGreaterThanOrEqual(seen.length)
    expect(chunks.slice(0, metadata)).toEqual([...said, ...closingOf(said)])
    expect(chunks.slice(metadata)).toEqual([
      { type: 'message-metadata', messageMetadata: expect.objectContaining({ runId, threadId, sandboxId }) },
      { type: 'error', errorText: stopped },
      { type: 'finish' },
    ])
    const there = Math.min(earlier, all.length)
    expect(await readEvents(await resume(there))).toEqual(all.slice(there))

    const thread = await read(threadId)
    expect([thread.status, thread.error]).toEqual(['error', stopped])
    const [, partial] = thread.messages
    expect(partial?.content ?? '').toBe(textIn(said))
    const begun = typesIn(chunks).filter(type => /^((text|tool-input)-start|start-step)$/.test(type))
    expect(partial?.parts.length ?? 0).toBe(begun.length)

    await until(() => processesNamed(nap).length === 0, `no process of the run lives (sleep ${nap})`)
    expect(await visitCounter(server, sandboxId)).toBe(++visits)
    const next = await readEvents(await server.chat('and now?\n$ echo two', { sandboxId, threadId }))
    expect(textIn(next.map(({ data }) => data))).toBe('and now?\n')
    expect((await read(threadId)).status).toBe('completed')
  })
})

/** Every whole event up to the loss of the connection. */
async function readUntilLost(
  response: Response,
  onEvent: (events: ServerSentEvent[]) => Promise<void>,
): Promise<ServerSentEvent[]> {
  const events: ServerSentEvent[] = []
  try {
    for await (const event of eventsOf(response)) {
      events.push(event)
      await onEvent(events)
    }
  } catch {
    return events
  }
  throw new Error('the connection was not lost')
}

const read = async (threadId: string) =>
  (await server.ask('GET', `/v1/sandboxes/${sandboxId}/threads/${threadId}`)).body
