import type { ErrorCode } from '../errors.ts'
import type { RunStatus } from './run.ts'
import type { ModelCall } from './usage.ts'

/** Whoever made something happen. Absent when the server itself did. */
export interface Cause {
  /** The id of the request, as in its answer's header `x-request-id`. */
  requestId?: string
  keyId?: string
  /** A signed-in browser. */
  sessionId?: string
  /** The schedule that acted with the key's rights. */
  scheduleId?: string
  /** The end user of the token. */
  userId?: string
  /** The caller's address. */
  address?: string
}

/** The place of an observation. */
interface Placed {
  teamId: string
  sandboxId: string
}

export type Fact =
  /** `traceparent` is the caller's header, unchecked. */
  | { type: 'request.started'; requestId: string; method: string; traceparent?: string }
  /** The answer to a request begins. A stream goes on after this. */
  | ({
      type: 'request.ended'
      /** The method, and the path with names in place of ids; `other` for a path that is not a route. */
      method: string
      route: string
      status: number
      durationMs: number
      teamId?: string
      cause: Cause & { requestId: string }
    } & Partial<Placed>)
  /** A caller's command has `cause`, an agent's has `runId`. */
  | ({ type: 'exec.started'; execId: string; commandSha256: string; cause?: Cause; runId?: string } & Placed)
  /** `exitCode` is absent when the command did not run to its end. */
  | ({
      type: 'exec.ended'
      execId: string
      outcome: 'exited' | 'timeout' | 'aborted' | 'failed'
      exitCode?: number
      durationMs: number
      cause?: Cause
      runId?: string
    } & Placed)
  | ({ type: 'process.started'; pid: number; commandSha256: string; cause: Cause } & Placed)
  /** Done by a caller, or by an agent's engine in a run. Writes of programs inside the sandbox are not observed. */
  | ({
      type: 'file.changed'
      how: 'write' | 'remove' | 'makeDirectory' | 'rename'
      path: string
      /** The new path of a rename. */
      toPath?: string
      sizeBytes?: number
      outcome: 'done' | 'failed'
      runId?: string
      cause: Cause
    } & Placed)
  | ({ type: 'repository.cloned'; path: string; host: string; outcome: 'done' | 'failed'; cause: Cause } & Placed)
  /** The proxy allows or refuses a connection of a sandbox. */
  | { type: 'network.decided'; environmentId: string; host: string; port: number; isAllowed: boolean; reason?: string }
  /** The server put a secret into a request of a sandbox. `path` has no query. */
  | {
      type: 'secret.used'
      environmentId: string
      /** The name of the secret. */
      name: string
      host: string
      port: number
      method: string
      path: string
    }
  | ({
      type: 'run.started'
      runId: string
      threadId: string
      agentSlug: string
      engine: string
      model?: string
      isBackground: boolean
      cause?: Cause
    } & Placed)
  /** The end of a run is stored, or can no longer be stored. */
  | ({
      type: 'run.ended'
      runId: string
      threadId: string
      agentSlug: string
      engine: string
      status: Exclude<RunStatus, 'active'>
      durationMs: number
      inputTokens: number
      outputTokens: number
      costUsd: number
      cause?: Cause
    } & Placed)
  | ({
      type: 'sandbox.created'
      environmentId: string
      agentSlug: string
      backend: string
      /** Whether the environment was ready before the request. */
      isSpare: boolean
      /** The names of the secrets that the sandbox may use. */
      secrets?: readonly string[]
      durationMs: number
      cause: Cause
    } & Placed)
  /** A sandbox could not be made. `code` is that of the error which its caller got. */
  | { type: 'sandbox.failed'; teamId: string; backend: string; code: ErrorCode; durationMs: number; cause: Cause }
  /** A caller has stopped a sandbox. */
  | ({ type: 'sandbox.stopped'; cause: Cause } & Placed)
  | ({ type: 'sandbox.deleted'; backend: string; durationMs: number; cause?: Cause } & Placed)
  /** A call of a model has ended. */
  | ({
      type: 'model-call.ended'
      callId: string
      /** The provider's API that was called. */
      wire: string
      /** The time until the first piece of a streamed answer. */
      firstChunkMs?: number
    } & ModelCall)
  | ({
      type: 'tool-call.started'
      runId: string
      threadId: string
      callId: string
      name: string
      engine: string
    } & Placed)
  /** A tool call has ended, or waits for somebody. `name` is the tool's, which a bundle or an MCP server may have chosen. */
  | ({
      type: 'tool-call.ended'
      runId: string
      threadId: string
      callId: string
      name: string
      engine: string
      outcome: 'done' | 'failed' | 'waiting' | 'cut'
      durationMs: number
    } & Placed)

/**
 * Something that has happened in this process. It has no text of a message, no command line, no file's content, no variable's
 * value and no header, so subscribers may store and send it.
 */
export type Observation = Fact & {
  /** When it was observed. */
  time: string
}

/** Reports what has happened. Never throws. */
export type Observe = (fact: Fact) => void
