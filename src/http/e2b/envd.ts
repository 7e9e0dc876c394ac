import type { Caller } from '../../core/access/caller.ts'
import type { KnownSandbox } from '../../core/e2b/sandboxes.ts'
import type { Runtime } from '../../core/runtime.ts'
import { handleEnvd } from './envd/handle.ts'
import { createKnownStarts } from './envd/process.ts'
import { createWatchers } from './envd/watch.ts'

/** What belongs to a request for commands and files. */
export interface EnvdContext {
  runtime: Runtime
  /** Who sent it: the holder of the token, or of the key that made the token. */
  caller: Caller
  /** Aborts when the client has gone, and when the sandbox is removed or paused. Streams end with it: their connection is cut. */
  signal: AbortSignal
}

/** Answers a request for the commands and files of a running sandbox. Undefined for an unknown path. It may throw an ApiError. */
export type EnvdHandler = (request: Request, known: KnownSandbox, context: EnvdContext) => Promise<Response> | undefined

/** Makes the handler, with the state that it keeps between requests. */
export function createEnvd(): EnvdHandler {
  const state = { starts: createKnownStarts(), watchers: createWatchers() }
  return (request, { sandbox }, { runtime, caller, signal }) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/health' && request.method === 'GET') return Promise.resolve(new Response(null, { status: 204 }))
    return handleEnvd({ target: { runtime, caller, sandboxId: sandbox.id }, request, signal, state })
  }
}
