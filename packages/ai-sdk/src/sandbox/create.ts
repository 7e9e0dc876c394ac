import { ThreadboxError } from '../error.ts'
import { eventsOf, type Server } from '../server.ts'
import { hash } from './hash.ts'
import { DEFAULT_AGENT, type ThreadboxSandboxSettings } from './settings.ts'

export type CreateSettings = Extract<ThreadboxSandboxSettings, { sandbox?: never }>

interface Create {
  /** The sandbox's name, by which another process finds it instead of making a second one. */
  name?: string | undefined
  /** A snapshot, in place of the agent's image, files and set-up. */
  snapshot?: string
  signal?: AbortSignal | undefined
}

type CreateEvent =
  | { type: 'ready'; sandbox: { id: string } }
  | { type: 'error'; code: string; message: string }
  | { type: 'stage' | 'progress' | 'stdout' | 'stderr' }

/** Makes a sandbox and returns its id. */
export async function createSandbox(
  server: Server,
  settings: CreateSettings,
  { name, snapshot, signal }: Create,
): Promise<string> {
  const { agent = DEFAULT_AGENT, envs, files, setup, timeoutMs, networkAllowOut, networkDenyOut, secrets } = settings
  const body = {
    ...(name !== undefined && { name }),
    // The snapshot contains what set-up has made, so it is not repeated.
    ...(snapshot === undefined ? { agent, files, setup } : { snapshot }),
    // Without this variable Claude Code refuses to run as root.
    envs: { IS_SANDBOX: '1', ...envs },
    ...{ timeoutMs, networkAllowOut, networkDenyOut, secrets },
  }
  // The request asks for events, because Node waits only five minutes for an answer and a set-up may take longer.
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

/** Finds the id of the sandbox with this name. */
export async function findSandbox(server: Server, name: string, signal?: AbortSignal) {
  const path = `/sandboxes?name=${encodeURIComponent(name)}`
  const { sandboxes } = await server.json<{ sandboxes: { id: string; createdAt: string }[] }>('GET', path, { signal })
  return sandboxes[0]
}

/** The name of a session's sandbox, which is the same in every process. */
export async function nameOfSession(sessionId: string): Promise<string> {
  if (/^[A-Za-z0-9._-]{1,100}$/.test(sessionId)) return `ai-sdk-harness-session-${sessionId}`
  return `ai-sdk-harness-session.${await hash(sessionId, 64)}`
}
