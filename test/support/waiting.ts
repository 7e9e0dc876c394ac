import type { TestApp } from './app.ts'
import { say, threadOf } from './chat.ts'
import { readChunks } from './sse.ts'
import { until } from './until.ts'

export const clientTools = { pick: { description: 'Lets the user pick.', inputSchema: { type: 'object' } } }

export interface WaitingThread {
  sandboxId: string
  threadId: string
}

/** Sends a chat to the agent `asking`, and reads its whole answer. */
export async function sendTo(
  app: TestApp,
  body: object,
  key = app.key,
): Promise<WaitingThread & { runId: string; status: number; body: any; chunks: any[] }> {
  const response = await app.request('POST', '/v1/chat/asking', { body, key })
  const id = (name: string) => response.headers.get(`x-${name}-id`) ?? ''
  const ids = { sandboxId: id('sandbox'), threadId: id('thread'), runId: id('run') }
  if (response.status !== 200) return { ...ids, status: response.status, body: await response.json(), chunks: [] }
  return { ...ids, status: 200, body: undefined, chunks: await readChunks(response) }
}

/** A chat of the agent `asking` up to where it waits. */
export async function waitingThread(app: TestApp, text: string, fields: object = {}, key = app.key) {
  app.agent('asking', {}, { engine: 'asking' })
  const first = await sendTo(app, { messages: [say(text)], stream: 'full', tools: clientTools, ...fields }, key)
  if (first.status !== 200) throw new Error(JSON.stringify(first.body))
  const { sandboxId, threadId, chunks } = first
  const ids: WaitingThread = { sandboxId, threadId }
  return {
    ...ids,
    ids,
    chunks,
    thread: () => threadOf(app, ids),
    /** The reply of the last turn, as it is stored. */
    reply: async () => (await threadOf(app, ids)).messages.findLast(({ role }: any) => role === 'assistant'),
    approvals: async (query = '') =>
      (await app.ask('GET', `/v1/approvals?threadId=${threadId}${query}`)).body.approvals,
    /** Posts the conversation with the last reply changed, as the AI SDK does. */
    post: async (change: (part: any) => any, more: object = {}, by = key) => {
      const { messages } = await threadOf(app, ids)
      const posted = messages.map((message: any, index: number) =>
        index === messages.length - 1 ? { ...message, parts: message.parts.map(change) } : message,
      )
      return sendTo(app, { ...ids, messages: posted, ...more }, by)
    },
    settled: (status = 'completed') => until(async () => (await threadOf(app, ids)).status === status, status),
  }
}

/** What a client makes of a part that asks. */
export const approve =
  (approved = true, reason?: string) =>
  (part: any) =>
    part.state === 'approval-requested'
      ? {
          ...part,
          state: 'approval-responded',
          approval: { id: part.approval.id, approved, ...(reason && { reason }) },
        }
      : part

export const output = (value: unknown) => (part: any) =>
  part.state === 'input-available' ? { ...part, state: 'output-available', output: value } : part
