import { expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { askingPlugin } from '../support/asking-engine.ts'
import { say } from '../support/chat.ts'
import { approve, output, sendTo, waitingThread } from '../support/waiting.ts'

const app = useApp([], {}, () => [askingPlugin])

const callsIn = (reply: any): any[] => reply.parts.filter(({ toolCallId }: any) => toolCallId !== undefined)
const statesOf = (reply: any) => reply.parts.flatMap(({ state, toolCallId }: any) => (toolCallId ? [state] : []))

test('an approved call runs in the same message, once', async () => {
  const { chunks, thread, post, approvals, reply, ids } = await waitingThread(app, 'ask echo ran >> /tmp/ran; echo out')
  expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'tool-calls' })
  expect((await thread()).status).toBe('waiting')
  const [approval] = await approvals()
  expect(approval).toMatchObject({
    ...{ agent: 'asking', status: 'pending', tool: 'Run', kind: 'tool', ...ids },
    input: { command: 'echo ran >> /tmp/ran; echo out' },
    reason: 'It wants to run echo ran >> /tmp/ran; echo out.',
  })
  const before = await reply()
  expect(statesOf(before)).toEqual(['approval-requested'])
  const second = await post(approve())
  expect(second.status).toBe(200)
  expect(second.chunks[0]).toEqual({ type: 'start', messageId: before.id })
  expect(second.chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'stop' })
  const after = await reply()
  expect(after.id).toBe(before.id)
  expect(statesOf(after)).toEqual(['output-available'])
  expect(callsIn(after)[0]).toMatchObject({
    output: 'out\n',
    approval: { id: approval.id, approved: true },
  })
  expect((await thread()).status).toBe('completed')
  expect(await app.shell(ids.sandboxId, 'cat /tmp/ran')).toBe('ran\n')
  expect(await approvals()).toMatchObject([{ id: approval.id, status: 'approved' }])
  expect((await post(part => part)).body.error.code).toBe('nothing_to_continue')
})

test('a client’s output goes on, and both kinds of answer are awaited', async () => {
  const { post, reply, thread, ids } = await waitingThread(app, 'pick color\nask echo out')
  const first = await post(output({ color: 'red' }))
  expect([first.status, first.body]).toEqual([202, { ...ids, status: 'waiting' }])
  expect(statesOf(await reply())).toEqual(['output-available', 'approval-requested'])
  expect((await thread()).status).toBe('waiting')
  const second = await post(approve(false, 'no need'))
  expect(second.status).toBe(200)
  const { content, parts } = await reply()
  expect(content).toBe('round\noutput {"color":"red"}\ndenied no need\nround\n')
  expect(parts.slice(1, 3)).toMatchObject([
    { state: 'output-available', output: { color: 'red' } },
    { state: 'output-denied', approval: { approved: false, reason: 'no need' } },
  ])
})

test('an approval by the API starts the run in the background, and a second answer meets the first', async () => {
  const { approvals, settled, reply, ids } = await waitingThread(app, 'ask echo 1 >> /tmp/ran\nask echo 2 >> /tmp/ran')
  const [second, first] = await approvals('&status=pending')
  const answered = await app.ask('POST', `/v1/approvals/${second.id}`, { approved: false, reason: 'only one' })
  expect([answered.status, answered.body.status, answered.body.answerReason]).toEqual([200, 'denied', 'only one'])
  expect(statesOf(await reply())).toEqual(['approval-requested', 'output-denied'])
  const again = await app.ask('POST', `/v1/approvals/${second.id}`, { approved: true })
  expect([again.status, again.body.error.code]).toEqual([409, 'already_answered'])
  expect(again.body.error.approval).toEqual(answered.body)
  expect((await app.ask('POST', `/v1/approvals/${first.id}`, { approved: true })).status).toBe(200)
  await settled()
  expect(statesOf(await reply())).toEqual(['output-available', 'output-denied'])
  expect(await app.shell(ids.sandboxId, 'cat /tmp/ran')).toBe('1\n')
})

test('an output by the API starts the run in the background', async () => {
  const { chunks, settled, reply, ids } = await waitingThread(app, 'pick color')
  const { toolCallId } = chunks.find(({ type }) => type === 'tool-input-available')
  const path = `/v1/sandboxes/${ids.sandboxId}/threads/${ids.threadId}/tool-results`
  const answer = await app.ask('POST', path, { toolCallId, output: 'red' })
  expect([answer.status, answer.body]).toEqual([202, { ...ids, status: 'running' }])
  await settled()
  expect((await reply()).content).toBe('round\noutput "red"\nround\n')
  const again = await app.ask('POST', path, { toolCallId, output: 'blue' })
  expect([again.status, again.body.error.code]).toEqual([409, 'already_answered'])
  expect((await app.ask('POST', path, { toolCallId: 'call_none', output: 1 })).body.error.code).toBe('call_not_found')
})

test('a reply asks again after it went on', async () => {
  const { post, reply, thread } = await waitingThread(app, 'ask echo 1\nthen\nask echo 2\nthen\nsay done')
  await post(approve())
  expect(statesOf(await reply())).toEqual(['output-available', 'approval-requested'])
  expect((await thread()).status).toBe('waiting')
  await post(approve())
  const { content, parts } = await reply()
  expect(content).toBe('round\napproved \nround\napproved \nround\ndone\n')
  expect(parts.filter(({ toolCallId }: any) => toolCallId).map(({ output }: any) => output)).toEqual(['1\n', '2\n'])
})

test('a late answer runs in a new reply at the thread’s end', async () => {
  const { approvals, thread, settled, ids } = await waitingThread(app, 'ask echo late >> /tmp/ran')
  const next = await sendTo(app, { ...ids, messages: [say('say meanwhile')] })
  expect(next.status).toBe(200)
  expect((await thread()).messages.map(({ role }: any) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
  const [approval] = await approvals()
  expect(approval.status).toBe('pending')
  await app.ask('POST', `/v1/approvals/${approval.id}`, { approved: true })
  await settled()
  const { messages } = await thread()
  expect(messages).toHaveLength(5)
  expect(statesOf(messages[1])).toEqual(['approval-responded'])
  expect(statesOf(messages[4])).toEqual(['output-available'])
  expect(await app.shell(ids.sandboxId, 'cat /tmp/ran')).toBe('late\n')
})

test('an approval that a thread went on without is cancelled when the thread shows another branch', async () => {
  const { ids, thread, approvals, reply } = await waitingThread(app, 'say first')
  const [{ id }] = (await thread()).messages
  await sendTo(app, { ...ids, messageId: id, messages: [{ ...say('ask echo 1'), id }] })
  await sendTo(app, { ...ids, messages: [say('say on')] })
  const [approval] = await approvals('&status=pending')
  const { branches } = (await thread()).messages[0]
  const path = `/v1/sandboxes/${ids.sandboxId}/threads/${ids.threadId}`
  expect((await app.ask('PATCH', path, { branch: branches[0] })).status).toBe(200)
  const answer = await app.ask('POST', `/v1/approvals/${approval.id}`, { approved: true })
  expect([answer.status, answer.body.error?.approval?.status]).toEqual([409, 'cancelled'])
  const before = await thread()
  expect(before.messages.map(({ content }: any) => content)).toEqual(['say first', 'round\nfirst\n'])
  expect(statesOf(await reply())).toEqual([])
  const old = (await app.ask('GET', `${path}?branch=${branches[1]}`)).body.messages
  expect(statesOf(old[1])).toEqual(['output-error'])
})
