import type {
  CallAnswer,
  Engine,
  EngineContext,
  EngineEnd,
  EngineEvent,
  Environment,
  MessagePart,
  Permissions,
  StoredMessage,
  Turn,
} from '../plugin-api/index.ts'
import type { Chunk, RunMetadata } from '../stream/chunk.ts'
import type { Ending } from '../stream/ending.ts'
import { createMessage } from '../stream/message.ts'
import type { RunEvent } from '../stream/run-event.ts'
import { createWriter } from '../stream/writer.ts'

export interface TurnInit {
  engine: Engine
  environment: Environment
  prompt: string | MessagePart[]
  history?: StoredMessage[]
  turn?: Partial<Turn>
  context?: Partial<EngineContext>
  /** Gets each event as it comes. The engine goes on when this has resolved, as after a server has stored the event. */
  onEvent?: (event: EngineEvent) => unknown
}

export interface TurnResult {
  end: EngineEnd
  events: EngineEvent[]
  chunks: Chunk[]
  /** The parts of the reply that are stored. */
  parts: MessagePart[]
  /** The text of the reply. */
  text: string
  /** The thread after the turn. */
  thread: StoredMessage[]
}

export const user = (parts: string | MessagePart[]): StoredMessage => ({
  id: crypto.randomUUID(),
  role: 'user',
  parts: typeof parts === 'string' ? [{ type: 'text', text: parts }] : parts,
})

/** Allows every call. */
export const permissions: Permissions = { byOptionsAlone: true, decide: () => ({ decision: 'allow' }) }

/** Runs one turn to its end in the way that a run does, through the writer. */
export async function playTurn(init: TurnInit): Promise<TurnResult> {
  const { engine, environment, prompt, history = [], onEvent } = init
  const message = user(prompt)
  const continues = init.turn?.continues
  const before = continues && !continues.isLate ? continues.reply.parts : []
  const writer = createWriter({ before, clientTools: Object.keys(init.context?.clientTools ?? {}) })
  const reply = createMessage(before)
  const events: EngineEvent[] = []
  const chunks: Chunk[] = writer.start()
  const context: EngineContext = {
    environment,
    cwd: '/home/user',
    env: {},
    signal: new AbortController().signal,
    options: {},
    permissions,
    clientTools: {},
    openModel: () => {
      throw new Error('there is no model')
    },
    fetch: (url, options) => fetch(url, options),
    ...init.context,
  }
  const turn: Turn = { prompt: continues?.isLate ? [] : [message], history, ...init.turn }
  const running = engine.run(turn, context)
  const take = (made: Chunk[]) => {
    chunks.push(...made)
    for (const chunk of made) reply.apply(chunk)
  }
  for (const event of continues && !continues.isLate ? toOpening(continues.answers) : []) take(writer.write(event))
  for (;;) {
    const { value, done } = await running.next()
    if (done) {
      take(writer.close(toEnding(value), metadata))
      const parts = reply.parts()
      const text = parts.map(part => (part.type === 'text' ? String(part.text) : '')).join('')
      const answer: StoredMessage = { id: crypto.randomUUID(), role: 'assistant', parts }
      return { end: value, events, chunks, parts, text, thread: [...history, message, answer] }
    }
    events.push(value)
    take(writer.write(toRunEvent(value)))
    await onEvent?.(value)
  }
}

/** As a server does it, with approvals named by their calls. */
const toRunEvent = (event: EngineEvent): RunEvent => {
  if (event.type === 'approval-request') return { ...event, approvalId: `apr_${event.callId}` }
  return event.type === 'steered' ? { type: 'steering', id: event.messageId, parts: [] } : event
}

/** What a server writes into the stream of a turn that goes on. */
const toOpening = (answers: readonly CallAnswer[]): RunEvent[] =>
  answers.map(answer => {
    const { callId } = answer
    if (answer.type === 'output') return { type: 'tool-result', callId, output: answer.output }
    if (answer.type === 'error') return { type: 'tool-result', callId, output: null, error: answer.error }
    const response = { type: 'approval-response' as const, callId, approvalId: `apr_${callId}` }
    if (answer.type === 'approved') return { ...response, approved: true }
    return { ...response, approved: false, ...(answer.reason !== undefined && { reason: answer.reason }) }
  })

const toEnding = ({ status, error }: EngineEnd): Ending =>
  status === 'failed' ? { status, errorText: error?.message ?? 'failed' } : { status }

const metadata: RunMetadata = {
  ...{ sessionId: 't', totalCostUsd: 0, inputTokens: 0, outputTokens: 0, durationMs: 0 },
  ...{ sandboxId: 's', threadId: 't', runId: 'r', totalTokens: 0, model: 'm' },
}
