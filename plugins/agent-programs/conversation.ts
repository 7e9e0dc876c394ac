import type { EngineContext, EngineEnd, EngineEvent, Turn } from '../../src/plugin-api/index.ts'
import type { Program } from './program.ts'
import type { PromptPart } from './prompt.ts'

/** A session of an agent program, in a process that may serve many turns. */
export interface Conversation {
  readonly program: Program
  /** It tells of each tool call before that begins: what has told of none has started nothing. */
  readonly tellsCallsFirst: boolean
  /** The program's own name for it. */
  readonly sessionId: string
  /** Asks, and tells what comes until the answer's end. Never rejects; when the program ends, so does the answer. */
  ask(prompt: readonly PromptPart[], tell: (event: EngineEvent) => void): Promise<EngineEnd>
  /** Wants the answer to end now. */
  interrupt(): void
}

/** How one turn's conversation is started. */
export interface Launch {
  /** Of the program, in front of its session ids. */
  name: string
  /** All that a running process cannot change: with another key it is not the one that this turn wants. */
  key: string
  /** Goes on with a session, or begins one. Throws SessionLost when the program does not have it. */
  open(session: string | undefined, tell: (event: EngineEvent) => void): Promise<Conversation>
}

/** A kind of agent program. Throws an ApiError, or an error in words for who chats, when the turn is not possible. */
export type Plan = (turn: Turn, context: EngineContext) => Launch

export const failed = (code: string, message: string): EngineEnd => ({ status: 'failed', error: { code, message } })
