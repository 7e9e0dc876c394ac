import type { CallAnswer, Continuation, EngineEvent, MessagePart, StoredMessage } from '../../src/plugin-api/index.ts'
import type { CallIds } from './model/call-ids.ts'
import { runCalls } from './tools/run-calls.ts'
import type { Tool, ToolContext } from './tools/tool.ts'

export interface Answering {
  tools: ReadonlyMap<string, Tool>
  toolContext: Omit<ToolContext, 'progress'>
  callIds: CallIds
}

/**
 * Executes what was approved, and returns the messages that follow the conversation then: the reply with the outcome of each
 * call, as the model is to see it.
 */
export async function* takeAnswers(
  continues: Continuation,
  answering: Answering,
): AsyncGenerator<EngineEvent, StoredMessage[]> {
  const { reply, answers, isLate } = continues
  if (isLate) return yield* answerLate(answers, answering)
  const outcomes = new Map<unknown, Outcome>()
  for (const answer of answers) {
    outcomes.set(answer.callId, answer.type === 'approved' ? yield* execute(answer, answering) : toOutcome(answer))
    if (answering.toolContext.signal.aborted) break
  }
  const parts = reply.parts.map(part => {
    const outcome = outcomes.get(part.toolCallId)
    return outcome ? { ...part, ...outcome } : part
  })
  return [{ ...reply, parts }]
}

/** What a call came to, as the fields of a stored part. */
type Outcome =
  | { state: 'output-available'; output: unknown }
  | { state: 'output-error'; errorText: string }
  | { state: 'output-denied'; approval: { approved: false; reason?: string } }

function toOutcome(answer: Exclude<CallAnswer, { type: 'approved' }>): Outcome {
  if (answer.type === 'output') return { state: 'output-available', output: answer.output }
  if (answer.type === 'error') return { state: 'output-error', errorText: answer.error }
  const { reason } = answer
  return { state: 'output-denied', approval: { approved: false, ...(reason !== undefined && { reason }) } }
}

/** The event before the call is what keeps a call from running twice when the server stops here. */
async function* execute(
  { callId, name, input }: Pick<CallAnswer, 'callId' | 'name' | 'input'>,
  { tools, toolContext }: Answering,
  shownId = callId,
): AsyncGenerator<EngineEvent, Outcome> {
  yield { type: 'tool-begin', callId }
  const running = runCalls([{ callId: shownId, name, input }], tools, toolContext)
  let outcome: Outcome = { state: 'output-error', errorText: 'cancelled' }
  for (let step = await running.next(); !step.done; step = await running.next()) {
    const event = step.value
    if (event.type === 'tool-result') {
      outcome =
        event.error === undefined
          ? { state: 'output-available', output: event.output }
          : { state: 'output-error', errorText: event.error }
    }
    yield event
  }
  return outcome
}

/** The conversation has gone on: what was approved runs as a call of a new reply, after words on what was decided. */
async function* answerLate(
  answers: readonly CallAnswer[],
  answering: Answering,
): AsyncGenerator<EngineEvent, StoredMessage[]> {
  const news: StoredMessage = {
    id: crypto.randomUUID(),
    role: 'system',
    parts: [{ type: 'text', text: describe(answers) }],
  }
  const parts: MessagePart[] = []
  answering.callIds.beginAnswer()
  for (const answer of answers) {
    if (answer.type !== 'approved') continue
    const { name, input } = answer
    const callId = answering.callIds.toOwn(answer.callId)
    yield { type: 'tool-call', callId, name, input }
    const outcome = yield* execute(answer, answering, callId)
    parts.push({ type: `tool-${name}`, toolCallId: callId, input, ...outcome })
    if (answering.toolContext.signal.aborted) break
  }
  return parts.length === 0 ? [news] : [news, { id: crypto.randomUUID(), role: 'assistant', parts }]
}

const describe = (answers: readonly CallAnswer[]): string =>
  [
    'The user has now decided on calls that waited:',
    ...answers.map(answer => {
      const call = `${answer.name} ${JSON.stringify(answer.input)}`
      if (answer.type === 'denied') return `- denied${answer.reason ? ` (${answer.reason})` : ''}: ${call}`
      return answer.type === 'approved' ? `- approved, and run now: ${call}` : `- answered: ${call}`
    }),
  ].join('\n')
