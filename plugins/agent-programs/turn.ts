import { settlesWithin } from '../../src/async/timeout.ts'
import { ApiError, messageOf } from '../../src/errors.ts'
import type { EngineContext, EngineEnd, EngineEvent, Turn } from '../../src/plugin-api/index.ts'
import { failed, type Launch, type PrepareLaunch } from './conversation.ts'
import { SessionLost } from './errors.ts'
import type { IdleConversation, IdleConversations } from './idle-conversations.ts'
import { type Recap, toParts, toPrompt } from './prompt.ts'
import { readSession, type Session, writeSession } from './session-id.ts'

type Emit = (event: EngineEvent) => void

/** A program that does not end its answer this long after an interrupt is killed. A run's own grace period is longer. */
const INTERRUPT_MS = 700

const cancelled: EngineEnd = { status: 'cancelled' }

/**
 * Runs one turn of an agent program: in the process that waits for this thread, or in a new one that resumes the thread's
 * session, or in a new session that gets the conversation so far as text. Never throws.
 */
export async function* runTurn(
  prepare: PrepareLaunch,
  idle: IdleConversations,
  turn: Turn,
  context: EngineContext,
): AsyncGenerator<EngineEvent, EngineEnd> {
  const left = new AbortController()
  const signal = AbortSignal.any([context.signal, left.signal])
  // Unbounded: a run takes events as fast as they come.
  const { readable, writable } = new TransformStream<EngineEvent, EngineEvent>({}, {}, { highWaterMark: Infinity })
  const writer = writable.getWriter()
  writer.closed.catch(() => {})
  const emit = (event: EngineEvent) => {
    // After an abort only the session's id still matters: the next turn needs it.
    if (!signal.aborted || event.type === 'session') writer.write(event).catch(() => {})
  }
  const answering = answer(prepare, idle, turn, { ...context, signal }, emit)
    .catch(error =>
      signal.aborted ? cancelled : failed(error instanceof ApiError ? error.code : 'agent_failed', messageOf(error)),
    )
    .finally(() => void writer.close().catch(() => {}))
  try {
    for await (const event of readable) yield event
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
  const fits = waiting?.key === launch.key && waiting.sessionId === session?.id
  if (waiting && !fits) await waiting.program.end()
  const finish = async (conversation: IdleConversation, end: EngineEnd) => {
    if (threadId !== undefined) idle.put(threadId, conversation)
    else await (signal.aborted ? conversation.program.kill() : conversation.program.end())
    return end
  }
  if (waiting && fits) {
    const asked = await ask(waiting, launch, turn, { ...context, recap: 'nothing', emit })
    // It may have died while it waited. It did nothing of this turn then, so a new process may.
    if (!asked.isLost) return finish(waiting, asked.end)
  }
  const { conversation, recap } = await open(launch, session, environment.id, signal, emit)
  return finish(conversation, (await ask(conversation, launch, turn, { ...context, recap, emit })).end)
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

/** Asks once and waits for the answer. After an abort it resolves when nothing that the answer started is alive. */
async function ask(
  conversation: IdleConversation,
  { name }: Launch,
  turn: Turn,
  {
    recap,
    signal,
    emit,
    steering,
    permissions,
  }: Pick<EngineContext, 'signal' | 'steering' | 'permissions'> & { recap: Recap; emit: Emit },
): Promise<{ end: EngineEnd; isLost: boolean }> {
  const { program } = conversation
  let hasEmitted = false
  let hasCalled = false
  let steered = 0
  const listen: Emit = event => {
    hasEmitted = true
    hasCalled ||= event.type === 'tool-call' || event.type === 'tool-input'
    if (event.type === 'steered') {
      steered += 1
      keep(false)
    }
    emit(event)
  }
  const keep = (isSure: boolean) => {
    const engineSessionId = writeSession(name, { id: conversation.sessionId, isSure }, turn, steered)
    emit({ type: 'session', engineSessionId })
  }
  keep(false)
  const asking = conversation.ask(toPrompt(turn, recap), listen, { permissions })
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
