import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai'
import { createServer, type Server } from '../server.ts'
import { chunksOf } from './chunks.ts'
import type { ThreadboxChatSettings, ThreadboxIds } from './settings.ts'

export interface ThreadboxCancelled {
  status: 'cancelled' | 'idle'
  runs: { runId: string; threadId: string; chunks: number; durationMs: number }[]
}

/** An answer to a call of a tool of the client. */
export type ThreadboxToolResult = { output: unknown } | { errorText: string }

export interface ThreadboxApproval {
  approved: boolean
  /** The reason, which the agent is told. */
  reason?: string
  /** Allows such calls from now on: in the thread, or for the agent. */
  remember?: 'thread' | 'agent'
}

/** A transport for `useChat`, with functions that the AI SDK's interface does not have. */
export interface ThreadboxChat extends ChatTransport<UIMessage> {
  /** The ids of a chat's last message. Undefined before this page has sent one. */
  idsOf(chatId: string): ThreadboxIds | undefined
  /** Ends the running reply on the server. Resolves when it has ended. (`stop()` of `useChat` only stops listening.) */
  cancel(chatId: string, options?: { queue?: 'keep' | 'drop' }): Promise<ThreadboxCancelled>
  /** Answers a question that waits for a person. `addToolApprovalResponse` with automatic sending does the same. */
  approve(approvalId: string, approval: ThreadboxApproval): Promise<void>
  /** Answers a call of a client tool. The reply goes on, and `resumeStream()` of `useChat` follows it. */
  answer(chatId: string, toolCallId: string, result: ThreadboxToolResult): Promise<void>
  /** The messages of a chat's thread, for `messages` of `useChat` after a reload. Empty when there is no thread. */
  messages(chatId: string): Promise<UIMessage[]>
}

/**
 * Makes a transport for chats of a threadbox server. The id of a chat names its conversation: another page with the same id
 * continues in the same sandbox and thread.
 *
 * @example
 * const transport = threadbox({ baseUrl, agent: 'coder', token: () => fetch('/api/token').then(answer => answer.text()) })
 * const chat = useChat({ id: 'trip', transport, resume: true })
 */
export function threadbox(settings: ThreadboxChatSettings): ThreadboxChat {
  const { apiKey, token, sandboxId, threadId, stream = 'ai-7', tools, whenBusy, body: more, onIds } = settings
  const credential = token ?? apiKey
  if (credential === undefined) throw new TypeError('threadbox() needs an `apiKey` or a `token`')
  const server = createServer({ baseUrl: settings.baseUrl, credential, fetch: settings.fetch })
  const slug = agentOf(server, settings)
  const known = new Map<string, ThreadboxIds>()

  const learn = (chatId: string, ids: ThreadboxIds) => {
    known.set(chatId, ids)
    onIds?.({ chatId, ...ids })
  }
  /** The path of a conversation's stream, with further parameters. */
  const streamPath = async (chatId: string, more: Record<string, string> = {}) => {
    const ids = known.get(chatId)
    const sandbox = sandboxId ?? ids?.sandboxId
    const thread = threadId ?? ids?.threadId
    const place = thread === undefined ? chatId : (sandbox ?? thread)
    const query = new URLSearchParams(more)
    if (thread !== undefined && place !== thread) query.set('threadId', thread)
    if (thread === undefined && sandbox !== undefined) query.set('sandboxId', sandbox)
    const search = query.size > 0 ? `?${query}` : ''
    return `/chat/${await slug()}/${encodeURIComponent(place)}/stream${search}`
  }
  const follow = (chatId: string, response: Response, signal?: AbortSignal, headers?: Record<string, string>) =>
    chunksOf(response, {
      signal,
      async resume(lastEventId, signal) {
        const asked = { headers: { ...headers, 'last-event-id': lastEventId }, signal }
        const response = await server.request('GET', await streamPath(chatId), asked)
        return response.status === 204 ? undefined : response
      },
    })

  return {
    idsOf: chatId => known.get(chatId),
    async sendMessages({ chatId, messages, trigger, messageId, abortSignal, headers, body }) {
      const response = await server.request('POST', `/chat/${await slug()}`, {
        headers: plain(headers),
        signal: abortSignal,
        body: {
          ...{ stream, tools, whenBusy, ...more, ...body },
          ...(threadId === undefined ? { id: chatId, sandboxId } : namesThread(threadId, sandboxId)),
          ...{ messages, trigger, messageId },
        },
      })
      if (response.status === 202) {
        // The reply comes later, and resuming finds it.
        learn(chatId, (await response.json()) as ThreadboxIds)
        return new ReadableStream<UIMessageChunk>({ start: controller => controller.close() })
      }
      learn(chatId, idsIn(response))
      return follow(chatId, response, abortSignal, plain(headers))
    },
    async reconnectToStream({ chatId, headers }) {
      const response = await server.request('GET', await streamPath(chatId), { headers: plain(headers) })
      if (response.status === 204) return null
      learn(chatId, idsIn(response))
      return follow(chatId, response, undefined, plain(headers))
    },
    async cancel(chatId, { queue } = {}) {
      return await server.json('DELETE', await streamPath(chatId, queue && { queue }))
    },
    async approve(approvalId, approval) {
      await server.request('POST', `/approvals/${encodeURIComponent(approvalId)}`, { body: approval })
    },
    async answer(chatId, toolCallId, result) {
      const path = await threadPath(chatId)
      if (path === undefined) throw new TypeError('answer(): the chat has no thread yet')
      await server.request('POST', `${path}/tool-results`, { body: { toolCallId, ...result } })
    },
    async messages(chatId) {
      const path = await threadPath(chatId)
      if (path === undefined) return []
      const { messages } = await server.json<{ messages: UIMessage[] }>('GET', path)
      return messages.map(({ id, role, parts, metadata }) => ({
        id,
        role,
        parts,
        ...(metadata != null && { metadata }),
      }))
    },
  }

  async function threadPath(chatId: string): Promise<string | undefined> {
    const ids = known.get(chatId)
    const sandbox = sandboxId ?? ids?.sandboxId
    const thread = threadId ?? ids?.threadId
    if (sandbox === undefined || thread === undefined) return undefined
    return `/sandboxes/${encodeURIComponent(sandbox)}/threads/${encodeURIComponent(thread)}`
  }
}

/** A thread alone is named like a conversation. */
const namesThread = (threadId: string, sandboxId: string | undefined) =>
  sandboxId === undefined ? { id: threadId } : { threadId, sandboxId }

/** The agent's segment of the path. When only the sandbox is known, the server is asked for it once. */
function agentOf(server: Server, { agent, sandboxId }: ThreadboxChatSettings): () => Promise<string> {
  if (agent !== undefined) return async () => encodeURIComponent(agent)
  if (sandboxId === undefined) throw new TypeError('threadbox() needs an `agent`, or a `sandboxId` that tells it')
  let asked: Promise<string> | undefined
  const ask = async () => {
    const path = `/sandboxes/${encodeURIComponent(sandboxId)}`
    const sandbox = await server.json<{ agent: { slug: string } }>('GET', path)
    return encodeURIComponent(sandbox.agent.slug)
  }
  return () => {
    asked ??= ask().catch(error => {
      asked = undefined
      throw error
    })
    return asked
  }
}

function idsIn({ headers }: Response): ThreadboxIds {
  const runId = headers.get('x-run-id')
  return {
    sandboxId: headers.get('x-sandbox-id') ?? '',
    threadId: headers.get('x-thread-id') ?? '',
    ...(runId !== null && { runId }),
    status: 'running',
  }
}

const plain = (headers: Record<string, string> | Headers | undefined): Record<string, string> | undefined =>
  headers instanceof Headers ? Object.fromEntries(headers) : headers
