import { expect, test } from 'bun:test'
import type { UIMessage } from 'ai'
import { lastMessageIsAnswered, type ThreadboxChatSettings, threadbox } from '../../packages/ai-sdk/src/chat/index.ts'
import { useApp } from '../support/app.ts'
import { askingPlugin } from '../support/asking-engine.ts'
import { until } from '../support/until.ts'
import { PageChat } from './page-chat.ts'

const app = useApp([], {}, () => [askingPlugin])

const connect = (more: Partial<ThreadboxChatSettings> = {}) =>
  threadbox({ baseUrl: app.url, apiKey: app.key, agent: 'echo', ...more })
const newId = () => `chat-${crypto.randomUUID()}`
const textOf = ({ parts }: Pick<UIMessage, 'parts'>) =>
  parts.map(part => (part.type === 'text' ? part.text : '')).join('')
const said = ({ messages }: { messages: readonly UIMessage[] }) => messages.map(each => textOf(each))
const words = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1} `).join('')

test('a chat goes on in its thread, by its id, and another page finds its messages', async () => {
  const id = newId()
  const transport = connect()
  const chat = new PageChat({ id, transport })
  await chat.sendMessage({ text: 'Hello' })
  await chat.sendMessage({ text: 'Again' })
  expect([chat.status, said(chat)]).toEqual(['ready', ['Hello', 'Hello', 'Again', 'Again']])
  const ids = transport.idsOf(id)
  const later = connect()
  await new PageChat({ id, transport: later }).sendMessage({ text: 'Later' })
  expect(later.idsOf(id)?.threadId).toBe(ids!.threadId)
  const byThread = connect({ sandboxId: ids!.sandboxId, threadId: ids!.threadId })
  const messages = await byThread.messages('any')
  expect(messages.map(textOf)).toEqual(['Hello', 'Hello', 'Again', 'Again', 'Later', 'Later'])
  const other = new PageChat({ id: 'any', transport: byThread, messages })
  await other.sendMessage({ text: 'On' })
  expect([byThread.idsOf('any')?.threadId, said(other).at(-1)]).toEqual([ids!.threadId, 'On'])
  expect(await connect().messages(newId())).toEqual([])
  const inSandbox = connect({ sandboxId: ids!.sandboxId })
  await new PageChat({ id: newId(), transport: inSandbox }).sendMessage({ text: 'Beside' })
  expect((await app.ask('GET', `/v1/sandboxes/${ids!.sandboxId}/threads`)).body).toHaveLength(2)
})

test('a page that comes back follows the reply, and one where none runs has nothing to follow', async () => {
  const id = newId()
  const first = new PageChat({ id, transport: connect() })
  const sent = first.sendMessage({ text: '/slow 30' })
  await until(() => said(first).at(-1)?.includes('3 ') === true)
  const second = new PageChat({ id, transport: connect() })
  await second.resumeStream()
  await sent
  expect([said(second).at(-1), said(first).at(-1)]).toEqual([words(30), words(30)])
  expect(await connect().reconnectToStream({ chatId: id })).toBeNull()
  expect(await connect().reconnectToStream({ chatId: newId() })).toBeNull()
})

test('a stream that breaks goes on where it was, without loss or double', async () => {
  let cuts = 0
  /** Each answer ends after some bytes, as with a proxy that goes away. */
  const cutting = (async (input: string | URL | Request, init?: RequestInit) => {
    const response = await fetch(input, init)
    if (!response.body || cuts >= 3) return response
    cuts += 1
    let left = 900
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        left -= chunk.byteLength
        if (left < 0) controller.error(new TypeError('cut'))
        else controller.enqueue(chunk)
      },
    })
    return new Response(response.body.pipeThrough(cut), response)
  }) as typeof fetch
  const chat = new PageChat({ id: newId(), transport: connect({ fetch: cutting }) })
  await chat.sendMessage({ text: '/slow 40' })
  expect([cuts, chat.status, said(chat).at(-1)]).toEqual([3, 'ready', words(40)])
})

test('cancel ends the reply on the server; stop only stops listening', async () => {
  const id = newId()
  const transport = connect()
  const chat = new PageChat({ id, transport })
  const sent = chat.sendMessage({ text: '/slow 4000' })
  await until(() => said(chat).at(-1)?.includes('3 ') === true)
  await chat.stop()
  await sent
  const { sandboxId } = transport.idsOf(id)!
  expect(app.runtime.runs.active(sandboxId)).toHaveLength(1)
  expect(await transport.cancel(id)).toMatchObject({
    status: 'cancelled',
    runs: [{ runId: transport.idsOf(id)?.runId }],
  })
  expect(app.runtime.runs.active(sandboxId)).toHaveLength(0)
  expect((await transport.cancel(id)).status).toBe('idle')
})

test('tools of the page and approvals go on by themselves, once each, also both in one message', async () => {
  app.agent('asking', {}, { engine: 'asking' })
  const transport = connect({
    agent: 'asking',
    tools: { pick: { description: 'Picks.', inputSchema: { type: 'object' } } },
  })
  const posts: string[] = []
  const chat: PageChat = new PageChat({
    id: newId(),
    transport: {
      ...transport,
      sendMessages(options) {
        posts.push(options.trigger)
        return transport.sendMessages(options)
      },
    },
    onToolCall: ({ toolCall: { toolName: tool, toolCallId } }) =>
      void chat.addToolOutput({ tool: tool as never, toolCallId, output: 'red' as never }),
    sendAutomaticallyWhen: lastMessageIsAnswered,
  })
  const approval = () =>
    chat.messages.at(-1)?.parts.find(part => 'state' in part && part.state === 'approval-requested') as any
  await chat.sendMessage({ text: 'pick colour\nask echo ran' })
  expect(posts).toHaveLength(1)
  await chat.addToolApprovalResponse({ id: approval().approval.id, approved: true })
  await until(() => chat.status === 'ready' && said(chat).at(-1)?.includes('approved') === true)
  expect(said(chat).at(-1)).toContain('output "red"')
  expect(posts).toHaveLength(2)
  await chat.sendMessage({ text: 'pick one' })
  await until(() => chat.status === 'ready' && said(chat).at(-1)?.includes('output "red"') === true)
  expect([posts.length, chat.error]).toEqual([4, undefined])
})

test('calls are answered by the API too, and a reply is followed then', async () => {
  app.agent('asking', {}, { engine: 'asking' })
  const id = newId()
  const transport = connect({
    agent: 'asking',
    tools: { pick: { description: 'Picks.', inputSchema: { type: 'object' } } },
  })
  const chat = new PageChat({ id, transport })
  await chat.sendMessage({ text: 'pick colour\nask true' })
  const parts = chat.messages.at(-1)!.parts as any[]
  const [pick, ask] = [
    parts.find(({ toolCallId, approval }) => toolCallId && !approval),
    parts.find(each => each.approval),
  ]
  await transport.answer(id, pick.toolCallId, { output: 'blue' })
  await transport.approve(ask.approval.id, { approved: false, reason: 'Sunday' })
  await until(async () => {
    const last = (await transport.messages(id)).at(-1)
    return last !== undefined && /output "blue"\ndenied Sunday/.test(textOf(last))
  })
})

test('a busy thread says so, or keeps the message for its turn', async () => {
  const id = newId()
  const seen: string[] = []
  const chat = new PageChat({ id, transport: connect() })
  const sent = chat.sendMessage({ text: '/slow 40' })
  await until(() => said(chat).at(-1)?.includes('3 ') === true)
  const refused = new PageChat({ id, transport: connect() })
  await refused.sendMessage({ text: 'now' })
  expect(refused.error).toMatchObject({ name: 'ThreadboxError', status: 409, code: 'run_active' })
  const queueing = connect({ whenBusy: 'queue', onIds: ({ status }) => void seen.push(status) })
  const waiting = new PageChat({ id, transport: queueing })
  await waiting.sendMessage({ text: 'later' })
  expect([waiting.error, seen]).toEqual([undefined, ['queued']])
  await sent
  await until(async () => (await queueing.messages(id)).map(textOf).at(-1) === 'later')
})

test('what is missing is said at once', () => {
  expect(() => threadbox({ baseUrl: app.url, agent: 'echo' })).toThrow('apiKey')
  expect(() => threadbox({ baseUrl: app.url, apiKey: app.key })).toThrow('agent')
})
