import type { TestApp } from './app.ts'
import type { Answer } from './client.ts'
import { readEvents, type ServerSentEvent } from './sse.ts'

/** A user's message, as clients send it. */
export const say = (text: string, id?: string) => ({ ...(id && { id }), role: 'user', parts: [{ type: 'text', text }] })

export interface Chat {
  sandboxId: string
  threadId: string
  runId: string
  response: Response
}

/** Starts a chat. Throws when it is refused. */
export async function startChat(app: TestApp, text: string, fields: object = {}): Promise<Chat> {
  const response = await app.request('POST', '/v1/chat/echo', { body: { messages: [say(text)], ...fields } })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  const id = (name: string) => response.headers.get(`x-${name}-id`) ?? ''
  return { sandboxId: id('sandbox'), threadId: id('thread'), runId: id('run'), response }
}

/** A chat and all that it streamed. */
export async function chat(app: TestApp, text: string, fields: object = {}) {
  const { response, ...ids } = await startChat(app, text, fields)
  const events: ServerSentEvent[] = await readEvents(response)
  return { ...ids, events, chunks: events.map(({ data }) => data) }
}

export const threadOf = async (
  app: TestApp,
  { sandboxId, threadId }: Pick<Chat, 'sandboxId' | 'threadId'>,
): Promise<any> => (await app.ask('GET', `/v1/sandboxes/${sandboxId}/threads/${threadId}`)).body

export const cancel = (app: TestApp, sandboxId: string, query = ''): Promise<Answer> =>
  app.ask('DELETE', `/v1/chat/echo/${sandboxId}/stream${query}`)

export const resume = (app: TestApp, sandboxId: string, lastEventId?: string, query = ''): Promise<Response> =>
  app.request('GET', `/v1/chat/echo/${sandboxId}/stream${query}`, {
    ...(lastEventId !== undefined && { headers: { 'last-event-id': lastEventId } }),
  })

/** What a thread says, as `role: text`. */
export const contents = async (app: TestApp, ids: Pick<Chat, 'sandboxId' | 'threadId'>): Promise<string[]> =>
  (await threadOf(app, ids)).messages.map(({ role, content }: any) => `${role}: ${content}`)
