import { settlesWithin } from '../../src/async/timeout.ts'
import { ApiError, messageOf } from '../../src/errors.ts'
import type { EngineContext, EngineEnd, EngineEvent, Turn } from '../../src/plugin-api/index.ts'
import { type Answer, createAnswer, type ExpectedCall, type Listener } from './answer.ts'
import { failed, type Launch, type PrepareLaunch } from './conversation.ts'
import { SessionLost } from './errors.ts'
import type { IdleConversation, IdleConversations } from './idle-conversations.ts'
import { type Recap, toParts, toPrompt } from './prompt.ts'
import { readSession, type Session, writeSession } from './session-id.ts'

type Emit = Listener['emit']

/** A program that does not end its answer this long after an interrupt is killed. A run's own grace period is longer. */
const INTERRUPT_MS = 700

const cancelled: EngineEnd = { status: 'cancelled' }

/**
 * Runs one turn of an agent program: in the process that waits for this thread, or in a new one that resumes the thread's
 * session, or in a new session that gets the conversation so far as text. A turn that goes on does so in the answer that
 * waits, where that is alive. Never throws.
 */
export async function* runTurn(
  prepare: PrepareLaunch,
  idle: IdleConversations,
  turn: Turn,
  context: EngineContext,
): AsyncGenerator<EngineEvent, EngineEnd> {
  const left = new AbortController()
  const signal = AbortSignal.any([context.signal, left.signal])
  type Item = { event: EngineEvent; onTaken?: () => void }
  // Unbounded: a run takes events as fast as they come.
  const { readable, writable } = new TransformStream<Item, Item>({}, {}, { highWaterMark: Infinity })
  const writer = writable.getWriter()
  writer.closed.catch(() => {})
  const emit: Emit = (event, onTaken) => {
    // After an abort only the session's id still matters: the next turn needs it.
    if (signal.aborted && event.type !== 'session') return
    writer.write({ event, ...(onTaken && { onTaken }) }).catch(() => {})
  }
  const answering = answer(prepare, idle, turn, { ...context, signal }, emit)
    .catch(error =>
      signal.aborted ? cancelled : failed(error instanceof ApiError ? error.code : 'agent_failed', messageOf(error)),
    )
    .finally(() => void writer.close().catch(() => {}))
  try {
    for await (const { event, onTaken } of readable) {
      yield event
      if (!signal.aborted) onTaken?.()
    }
    return await answering
  } finally {
    left.abort()
    await answering
  }
}

async function answer(
  prepare: PrepareLaunch,
  idle: IdleConversations,
  turn: Turn,
  context: EngineContext,
  emit: Emit,
): Promise<EngineEnd> {
  const { threadId, signal, environment } = context
  if (signal.aborted) return cancelled
  const launch = prepare(turn, context)
  const session = readSession(launch.name, turn)
  const waiting = threadId === undefined ? undefined : idle.take(threadId)
  const fits = waiting?.key === launch.key && waiting.sessionId === session?.id && waiting.answer?.isFull !== true
  if (waiting && !fits) await waiting.program.end()
  const finish = async (conversation: IdleConversation, end: EngineEnd) => {
    if (threadId !== undefined) idle.put(threadId, conversation)
    else await (signal.aborted ? conversation.program.kill() : conversation.program.end())
    return end
  }
  const asking = { ...context, launch, turn, listener: { ...context, emit } }
  if (waiting && fits) {
    const { continues } = turn
    const goesOn = continues?.isLate === false && waiting.answer?.waitsFor(continues.answers) === true
    if (waiting.answer && !goesOn) await leaveAnswer(waiting)
    const asked = await (goesOn ? goOn(waiting, asking) : ask(waiting, { ...asking, recap: 'nothing' }))
    // It may have died while it waited. It did nothing of this turn then, so a new process may.
    if (!asked.isLost) return finish(waiting, asked.end)
  }
  const { conversation, recap } = await open(launch, session, environment.id, signal, emit)
  return finish(conversation, (await ask(conversation, { ...asking, recap })).end)
}

/** Ends an answer that waits, since the user goes on to something else. What it asks for does not run. */
async function leaveAnswer(conversation: IdleConversation): Promise<void> {
  const { answer } = conversation
  if (!answer) return
  delete conversation.answer
  const left = answer.listen({ permissions: { decide: () => ({ decision: 'deny' }) }, clientTools: {}, emit: () => {} })
  // First: a program that reads a refusal calls its model with it.
  conversation.interrupt()
  answer.abandon()
  if (!(await settlesWithin(INTERRUPT_MS, left))) await conversation.program.kill()
}

async function open(
  launch: Launch,
  session: Session | undefined,
  environmentId: string,
  signal: AbortSignal,
  emit: Emit,
) {
  const start = async (from: string | undefined, recap: Recap) => {
    signal.throwIfAborted()
    const conversation = Object.assign(await launch.open(from, emit), { environmentId, key: launch.key })
    return { conversation, recap }
  }
  if (session === undefined) return start(undefined, 'all')
  try {
    return await start(session.id, session.isSure ? 'nothing' : 'last turn')
  } catch (error) {
    if (!(error instanceof SessionLost)) throw error
    const text = 'The agent program no longer has its session. A new one starts with the conversation so far.'
    emit({ type: 'notice', level: 'info', code: 'session_lost', text })
    return start(undefined, 'all')
  }
}

interface Asking extends Pick<EngineContext, 'signal' | 'steering'> {
  launch: Launch
  turn: Turn
  listener: Listener
}

interface Asked {
  end: EngineEnd
  /** The program died before anything of this turn came. */
  isLost: boolean
}

/** Asks once and waits for the answer. After an abort it resolves when nothing that the answer started is alive. */
function ask(conversation: IdleConversation, { recap, ...asking }: Asking & { recap: Recap }): Promise<Asked> {
  const { turn } = asking
  const { answers = [], isLate = false } = turn.continues ?? {}
  const expected = answers.flatMap<ExpectedCall>(answer => (answer.type === 'approved' ? [{ ...answer, isLate }] : []))
  const answer = createAnswer(expected)
  return follow(conversation, answer, asking, () => conversation.ask(toPrompt(turn, recap), answer))
}

/** Goes on with the answer that waits. */
function goOn(conversation: IdleConversation, asking: Asking): Promise<Asked> {
  const { answer } = conversation
  if (!answer) throw new Error('no answer waits')
  return follow(conversation, answer, asking, () => answer.give(asking.turn.continues?.answers ?? []))
}

async function follow(
  conversation: IdleConversation,
  answer: Answer,
  { launch, turn, signal, steering, listener }: Asking,
  begin: () => void,
): Promise<Asked> {
  const { program } = conversation
  let hasEmitted = false
  let hasCalled = conversation.answer !== undefined
  let steered = 0
  const keep = (isSure: boolean) => {
    const engineSessionId = writeSession(launch.name, { id: conversation.sessionId, isSure }, turn, steered)
    listener.emit({ type: 'session', engineSessionId })
  }
  delete conversation.answer
  keep(false)
  const asking = answer.listen({
    ...listener,
    emit(event, onTaken) {
      hasEmitted = true
      hasCalled ||= ['tool-call', 'tool-input', 'tool-begin'].includes(event.type)
      if (event.type === 'steered') {
        steered += 1
        keep(false)
      }
      listener.emit(event, onTaken)
    },
  })
  begin()
  const pass = () => {
    for (const message of signal.aborted ? [] : (steering?.take() ?? [])) {
      conversation.steer?.(message.id, toParts(message))
    }
  }
  const stopPassing = conversation.steer && steering?.onMessage(pass)
  if (stopPassing) pass()
  const end = await endOrAbort(asking, signal)
  stopPassing?.()
  // The server still has what the program did not take.
  if (!signal.aborted && conversation.hasUntaken) await program.kill()
  if (!signal.aborted) {
    if (program.isAlive) keep(true)
    if (end?.status === 'waiting') conversation.answer = answer
    return { end: end ?? cancelled, isLost: !program.isAlive && !hasEmitted && end?.status === 'failed' }
  }
  conversation.interrupt()
  const isAnswered = await settlesWithin(INTERRUPT_MS, asking)
  // A program kills the processes that it knows. Only the sandbox finds those that a tool has detached.
  if (!isAnswered || hasCalled || !conversation.announcesCalls || conversation.hasUntaken) await program.kill()
  else keep(true)
  return { end: cancelled, isLost: false }
}

const endOrAbort = (asking: Promise<EngineEnd>, signal: AbortSignal): Promise<EngineEnd | undefined> =>
  new Promise(resolve => {
    const stop = () => resolve(undefined)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    void asking.then(end => {
      signal.removeEventListener('abort', stop)
      resolve(end)
    })
  })
