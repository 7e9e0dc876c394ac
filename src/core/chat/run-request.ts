import type { Agent } from '../../model/agent.ts'
import type { Cause } from '../../model/observation.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Thread } from '../../model/thread.ts'
import type { Engine, Turn } from '../../plugin-api/index.ts'
import type { RunInit } from '../../runs/run-init.ts'
import type { ChatOptions } from './turn-options.ts'

/** Where a run takes place, and who answers. */
export interface RunPlace {
  agent: Agent
  engine: Engine
  sandbox: Sandbox
  thread: Thread
  /** The API key that asked. */
  keyId?: string
  /** Absent when a waiting run begins by itself, without a request. */
  cause?: Cause
  /**
   * The place that the run takes among its caller's open runs. Absent for a run that no request has started; that run is counted
   * too.
   */
  slot?: Disposable
}

/** What a chat asks of its run beside its messages. Kept as JSON while the reply waits, for the run that goes on. */
export interface RunRequest {
  /** The agent that was asked, which need not be that of the sandbox. */
  agentSlug?: string
  options: ChatOptions
  /** The API key that asked. */
  keyId?: string
}

/** The run's own part: its messages, or the reply that it goes on with. */
export interface RunWork {
  turn: Pick<Turn, 'prompt' | 'history' | 'continues'>
  /** False: the engine begins anew with what the thread has. */
  keepsSession: boolean
  /** Present when the reply can only end: why. */
  failure?: string
  init: Pick<RunInit, 'background' | 'messages' | 'reply' | 'opening' | 'answers'>
}
