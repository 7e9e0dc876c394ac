import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import type { AgentServer } from '../support/agent-server.ts'
import type { ModelTurn } from '../support/model-server.ts'
import { until } from '../support/until.ts'
import type { ChatPage, PageOptions, useBrowser } from './browser.ts'
import type { AiVersion } from './pages.ts'

/** A thread in a sandbox of its own, open in a page with a token of the end user who may see it. */
export type Scene = ChatPage & {
  readonly sandboxId: string
  readonly threadId: string
  /** How each run of the thread stands, the oldest first. */
  runs(): string[]
  /** The thread as the server has it. */
  thread(): Promise<any>
  /** Resolves when so many runs have begun. */
  begins(runs: number): Promise<void>
  /** Resolves when the thread has no run and waits for nothing. */
  settles(): Promise<void>
}

export const useScene =
  ({ server }: AgentServer, browser: ReturnType<typeof useBrowser>) =>
  async (version: AiVersion, options: Partial<PageOptions> = {}): Promise<Scene> => {
    const agent = options.agent ?? 'coder'
    const userId = `user-${crypto.randomUUID()}`
    const sandboxId = await server.sandbox({ agent, externalUserId: userId })
    const isCareful = agent === 'careful'
    const { token } = (await server.ask('POST', '/v1/tokens', { agent, userId, ...(isCareful && { approve: true }) }))
      .body
    const { body: thread } = await server.ask('POST', `/v1/sandboxes/${sandboxId}/threads`, {}, { key: token })
    const place = { sandboxId, threadId: thread.id as string }
    const chat = await browser.open(version, { server: server.url, agent, token, ...place, ...options })
    const runs = () => {
      using db = new Database(join(server.dataDirectory, 'threadbox.db'), { readonly: true })
      const query = db.query<{ status: string }, [string]>('select status from runs where thread_id = ? order by id')
      return query.all(place.threadId).map(({ status }) => status)
    }
    const path = `/v1/sandboxes/${sandboxId}/threads/${place.threadId}`
    return Object.assign(chat, {
      ...place,
      runs,
      thread: async () => (await server.ask('GET', path)).body,
      begins: (count: number) => until(() => runs().length === count),
      settles: () => until(async () => (await server.ask('GET', path)).body.status === 'completed'),
    })
  }

/** A model's turn that comes when the test opens the gate. */
export function gated(turn: ModelTurn) {
  const { promise, resolve: open } = Promise.withResolvers<void>()
  return { open, turn: () => promise.then(() => turn) }
}
