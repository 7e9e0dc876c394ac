import { ThreadboxError } from '../error.ts'
import { eventsOf, type Server } from '../server.ts'
import { hash } from './hash.ts'
import { DEFAULT_AGENT, type ThreadboxSandboxSettings } from './settings.ts'

export type CreateSettings = Extract<ThreadboxSandboxSettings, { sandbox?: never }>

interface Create {
  /** The sandbox's name: another process finds it by it, and nobody makes a second one. */
  name?: string | undefined
  /** In place of the agent's image, files and set-up. */
  snapshot?: string
  signal?: AbortSignal | undefined
}

type CreateEvent =
  | { type: 'ready'; sandbox: { id: string } }
  | { type: 'error'; code: string; message: string }
  | { type: 'stage' | 'progress' | 'stdout' | 'stderr' }

/** Makes a sandbox. Gives its id. */
export async function createSandbox(
  server: Server,
  settings: CreateSettings,
  { name, snapshot, signal }: Create,
): Promise<string> {
  const { agent = DEFAULT_AGENT, envs, files, setup, timeoutMs, networkAllowOut, networkDenyOut, secrets } = settings
  const body = {
    ...(name !== undefined && { name }),
    // What the snapshot has already is not made anew.
    ...(snapshot === undefined ? { agent, files, setup } : { snapshot }),
    // Claude Code refuses to be root without it.
    envs: { IS_SANDBOX: '1', ...envs },
    ...{ timeoutMs, networkAllowOut, networkDenyOut, secrets },
  }
  // With events a set-up may take as long as it wants: Node gives an answer without any five minutes.
  const response = await server.request('POST', '/sandboxes', {
    body,
    signal,
    headers: { accept: 'text/event-stream' },
  })
  for await (const { data } of eventsOf(response)) {
    if (data === '[DONE]') break
    const event: CreateEvent = JSON.parse(data)
    if (event.type === 'ready') return event.sandbox.id
    if (event.type === 'error') throw new ThreadboxError(event.message, 500, event.code)
  }
  throw new ThreadboxError('The server ended before the sandbox was made.', 500, 'sandbox_unavailable')
}

/** The id of the sandbox of this name. */
export async function findSandbox(server: Server, name: string, signal?: AbortSignal) {
  const path = `/sandboxes?name=${encodeURIComponent(name)}`
  const { sandboxes } = await server.json<{ sandboxes: { id: string; createdAt: string }[] }>('GET', path, { signal })
  return sandboxes[0]
}

/** The name of a session's sandbox, the same in each process. */
export async function nameOfSession(sessionId: string): Promise<string> {
  if (/^[A-Za-z0-9._-]{1,100}$/.test(sessionId)) return `ai-sdk-harness-session-${sessionId}`
  return `ai-sdk-harness-session.${await hash(sessionId, 64)}`
}
