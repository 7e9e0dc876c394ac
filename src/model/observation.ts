import type { ErrorCode } from '../errors.ts'
import type { RunStatus } from './run.ts'
import type { ModelCall } from './usage.ts'

/** Who or what made something happen. Absent where the server itself did. */
export interface Cause {
  /** The request, as its answer's header `x-request-id` has it. */
  requestId?: string
  keyId?: string
  /** A signed-in browser. */
  sessionId?: string
  /** What runs by itself, with the rights of the key. */
  scheduleId?: string
  /** The end user of a token. */
  userId?: string
  /** Where the caller is. */
  address?: string
}

/** Where something happened. */
interface Placed {
  teamId: string
  sandboxId: string
}

export type Fact =
  /** `traceparent`: the caller's, as it was sent and not checked. */
  | { type: 'request.started'; requestId: string; method: string; traceparent?: string }
  /** Its answer begins: a stream goes on after this. */
  | ({
      type: 'request.ended'
      /** The method, and the path with names in place of its ids. `other` for one that is no route. */
      method: string
      route: string
      status: number
      durationMs: number
      teamId?: string
      cause: Cause & { requestId: string }
    } & Partial<Placed>)
  /** A caller's command has a cause, an agent's the run. */
  | ({ type: 'exec.started'; execId: string; commandSha256: string; cause?: Cause; runId?: string } & Placed)
  /** `exitCode` is absent when the command was not run to its end. */
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
  /** By a caller, or by an agent's engine in a run; what programs inside write is not seen. */
  | ({
      type: 'file.changed'
      how: 'write' | 'remove' | 'makeDirectory' | 'rename'
      path: string
      /** Of a rename. */
      toPath?: string
      sizeBytes?: number
      outcome: 'done' | 'failed'
      runId?: string
      cause: Cause
    } & Placed)
  | ({ type: 'repository.cloned'; path: string; host: string; outcome: 'done' | 'failed'; cause: Cause } & Placed)
  /** The proxy lets a connection of a sandbox out, or refuses it. */
  | { type: 'network.decided'; environmentId: string; host: string; port: number; isAllowed: boolean; reason?: string }
  /** The server puts a secret into a request of a sandbox. `path` has no query. */
  | {
      type: 'secret.used'
      environmentId: string
      /** Of the secret. */
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
  /** Its end is stored, or never will be. */
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
      /** It was ready before anyone asked. */
      isSpare: boolean
      /** Names of the secrets that it may use. */
      secrets?: readonly string[]
      durationMs: number
      cause: Cause
    } & Placed)
  /** It could not be made. `code`: of the error that its caller got. */
  | { type: 'sandbox.failed'; teamId: string; backend: string; code: ErrorCode; durationMs: number; cause: Cause }
  /** A caller has stopped it. */
  | ({ type: 'sandbox.stopped'; cause: Cause } & Placed)
  | ({ type: 'sandbox.deleted'; backend: string; durationMs: number; cause?: Cause } & Placed)
  /** A call of a model has ended. */
  | ({
      type: 'model-call.ended'
      callId: string
      /** The API that it used. */
      wire: string
      /** Until the first piece of a streamed answer. */
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
  /** It has ended, or waits for somebody. `name` is the tool's, which a bundle or a server of tools may have chosen. */
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
 * Something that has happened in this process. It has no text of a message, no command line, no file's content, no
 * variable's value and no header: subscribers may keep and send what they get.
 */
export type Observation = Fact & {
  /** When it was observed. */
  time: string
}

/** Says what has happened. Never throws. */
export type Observe = (fact: Fact) => void
