import { DefaultChatTransport, type FileUIPart } from 'ai'
import { api, refusalOf, take } from '../api/client.ts'
import type { ChatMessage } from './chat-message.ts'
import type { ThreadPlace } from './place.ts'

/** What a person sends. */
export interface Draft {
  text: string
  files: FileUIPart[]
}

/** A refusal is shown in the server's words. */
const checkedFetch: typeof fetch = async (...request) => {
  const response = await fetch(...request)
  if (!response.ok) throw await refusalOf(response)
  return response
}

/** Talks to the agent of one thread, as any client of the API does. The server has the history: only what is new is sent. */
export const createTransport = ({ sandboxId, threadId, agent }: ThreadPlace) =>
  new DefaultChatTransport<ChatMessage>({
    api: `/v1/chat/${encodeURIComponent(agent)}`,
    credentials: 'same-origin',
    fetch: checkedFetch,
    prepareSendMessagesRequest: ({ messages, trigger, messageId }) => ({
      body: { sandboxId, threadId, stream: 'ai-7', trigger, messageId, messages: messages.slice(-1) },
    }),
    prepareReconnectToStreamRequest: () => ({
      api: `/v1/chat/${encodeURIComponent(agent)}/${sandboxId}/stream?threadId=${threadId}`,
    }),
  })

/** Sends a message beside the reply that is under way: for its own turn, or to the agent while it works. */
export async function sendBeside(
  { sandboxId, threadId, agent }: ThreadPlace,
  whenBusy: 'queue' | 'steer',
  { text, files }: Draft,
): Promise<void> {
  const parts = [...files, ...(text ? [{ type: 'text' as const, text }] : [])]
  const body = { sandboxId, threadId, whenBusy, messages: [{ id: crypto.randomUUID(), role: 'user' as const, parts }] }
  const response = await checkedFetch(`/v1/chat/${encodeURIComponent(agent)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  // The thread may be free by now: then this is its reply, which events lead to.
  await response.body?.cancel()
}

/** Ends the reply for every reader. */
export const cancelReply = ({ sandboxId, threadId, agent }: ThreadPlace) =>
  take(
    api.DELETE('/v1/chat/{slug}/{sandboxId}/stream', {
      params: { path: { slug: agent, sandboxId }, query: { threadId } },
    }),
  )
