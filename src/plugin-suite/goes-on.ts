import type { CallAnswer, EngineContext, MessagePart } from '../plugin-api/index.ts'
import type { SceneCall } from './scene.ts'
import type { Stage } from './stage.ts'
import type { TurnInit, TurnResult } from './turn.ts'

/** A turn that has waited, and what its thread has by then. */
export interface Waited {
  result: TurnResult
  prompt: string
  context: Partial<EngineContext>
}

type Decision =
  | { type: 'approved' }
  | { type: 'denied'; reason: string }
  | { type: 'output'; output: unknown }
  | { type: 'error'; error: string }

/** The calls that a reply waits for. */
export const listWaiting = ({ parts }: Pick<TurnResult, 'parts'>): MessagePart[] =>
  parts.filter(
    ({ state, providerExecuted, toolCallId }) =>
      typeof toolCallId === 'string' &&
      (state === 'approval-requested' || (state === 'input-available' && providerExecuted !== true)),
  )

export const answerAll = (waiting: readonly MessagePart[], decide: (input: unknown) => Decision): CallAnswer[] =>
  waiting.map(({ type, toolCallId, input }) => ({
    ...{ callId: String(toolCallId), name: type.slice('tool-'.length), input },
    ...decide(input),
  }))

/** The calls of a reply that have no outcome. */
export const listOpen = ({ parts }: TurnResult): string[] =>
  parts.flatMap(({ toolCallId, state }) =>
    typeof toolCallId === 'string' && !String(state).startsWith('output') ? [toolCallId] : [],
  )

/** The part of a command. */
export const partOf = ({ parts }: TurnResult, command: string): MessagePart | undefined =>
  parts.find(
    ({ input }) => typeof input === 'object' && input !== null && 'command' in input && input.command === command,
  )

/** Goes on with a turn that waited, in the same reply. */
export async function goOn(
  { subject, play }: Stage,
  { result, prompt, context }: Waited,
  decide: (input: unknown) => Decision,
  { again = [], ...more }: { again?: readonly SceneCall[] } & Pick<Partial<TurnInit>, 'engine' | 'onEvent'> = {},
): Promise<TurnResult> {
  subject.stage({ does: 'go on', calls: again })
  const reply = result.thread.at(-1)
  if (!reply) throw new Error('the turn has no reply')
  const answers = answerAll(listWaiting(result), decide)
  return await play(prompt, {
    ...more,
    ...{ context, history: result.thread.slice(0, -2) },
    turn: { ...sessionOf(result), continues: { reply, answers, isLate: false } },
  })
}

/** The session of a turn, for the next one. */
export function sessionOf({ events }: TurnResult): { engineSessionId?: string } {
  const session = events.findLast(event => event.type === 'session')
  return session?.type === 'session' ? { engineSessionId: session.engineSessionId } : {}
}
