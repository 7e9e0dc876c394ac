import type { EngineContext, EngineEnd, EngineEvent, Turn } from '../../src/plugin-api/index.ts'
import type { AnswerSink } from './answer.ts'
import type { Program } from './program.ts'
import type { PromptPart } from './prompt.ts'

/** A session of an agent program, in a process that may serve many turns. */
export interface Conversation {
  readonly program: Program
  /** It reports each tool call before that begins: as long as it has reported no call, it has started nothing. */
  readonly announcesCalls: boolean
  /** The id that the program gave the session. */
  readonly sessionId: string
  /** Sends a prompt and reports to `answer` until that ends. When the program ends, the answer fails. */
  ask(prompt: readonly PromptPart[], answer: AnswerSink): void
  /**
   * Gives the program what the user says during an answer, which then goes on until the program has heeded it. The answer
   * emits `steered` when the program has taken it. Absent: the program takes nothing during an answer.
   */
  steer?(messageId: string, prompt: readonly PromptPart[]): void
  /** There is something that the program was given and has not taken. It would begin an answer with it by itself. */
  readonly hasUntaken?: boolean
  /** Asks the program to end its answer now. */
  interrupt(): void
}

/** How to start the conversation of one turn. */
export interface Launch {
  /** The program's name, which is put in front of its session ids. */
  name: string
  /** Everything that a running process cannot change. A process with another key does not serve this turn. */
  key: string
  /** Resumes a session, or begins one. Throws SessionLost when the program does not have it. */
  open(session: string | undefined, emit: (event: EngineEvent) => void): Promise<Conversation>
}

/** One kind of agent program. Throws an ApiError, or an error whose message the user may read, when the turn is not possible. */
export type PrepareLaunch = (turn: Turn, context: EngineContext) => Launch

export const failed = (code: string, message: string): EngineEnd => ({ status: 'failed', error: { code, message } })
