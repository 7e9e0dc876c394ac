import { ApiError, messageOf } from '../../src/errors.ts'
import type { EngineContext, EngineEnd, EngineEvent, Turn } from '../../src/plugin-api/index.ts'
import { failed, type Launch, type Plan } from './conversation.ts'
import { SessionLost } from './errors.ts'
import type { Shelf, ShelvedConversation } from './idle-conversations.ts'
import { promptOf, type Retold } from './prompt.ts'
import { readSession, type Session, writeSession } from './session-id.ts'

type Tell = (event: EngineEvent) => void

/** How long a program may take to end its answer when it is asked to: then it is killed. A run's own grace is longer. */
const INTERRUPT_MS = 700

const cancelled: EngineEnd = { status: 'cancelled' }

/**
 * One turn of an agent program: by the process that waits for this thread, else by a new one that goes on with the
 * thread's session, else in a new session that is told the conversation so far. Never throws.
 */
export async function* runTurn(
  plan: Plan,
  shelf: Shelf,
  turn: Turn,
  context: EngineContext,
): AsyncGenerator<EngineEvent, EngineEnd> {
  const left = new AbortController()
  const signal = AbortSignal.any([context.signal, left.signal])
  // Nothing is held back: a run takes events as fast as they come.
  const { readable, writable } = new TransformStream<EngineEvent, EngineEvent>({}, {}, { highWaterMark: Infinity })
  const writer = writable.getWriter()
  writer.closed.catch(() => {})
  const tell = (event: EngineEvent) => {
    // Of what comes after the abort, only what is kept for the next turn counts.
    if (!signal.aborted || event.type === 'session') writer.write(event).catch(() => {})
  }
  const answering = answer(plan, shelf, turn, { ...context, signal }, tell)
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

async function answer(plan: Plan, shelf: Shelf, turn: Turn, context: EngineContext, tell: Tell): Promise<EngineEnd> {
  const { threadId, signal, environment } = context
  if (signal.aborted) return cancelled
  const launch = plan(turn, context)
  const session = readSession(launch.name, turn)
  const waiting = threadId === undefined ? undefined : shelf.take(threadId)
  const fits = waiting?.key === launch.key && waiting.sessionId === session?.id
  if (waiting && !fits) await waiting.program.end()
  const finish = async (conversation: ShelvedConversation, end: EngineEnd) => {
    if (threadId !== undefined) shelf.put(threadId, conversation)
    else await (signal.aborted ? conversation.program.kill() : conversation.program.end())
    return end
  }
  if (waiting && fits) {
    const asked = await ask(waiting, launch, turn, { retold: 'nothing', signal, tell })
    // It may have died while it waited: then nothing of the turn has happened.
    if (!asked.isLost) return finish(waiting, asked.end)
  }
  const { conversation, retold } = await open(launch, session, environment.id, signal, tell)
  return finish(conversation, (await ask(conversation, launch, turn, { retold, signal, tell })).end)
}

async function open(
  launch: Launch,
  session: Session | undefined,
  environmentId: string,
  signal: AbortSignal,
  tell: Tell,
) {
  const start = async (from: string | undefined, retold: Retold) => {
    signal.throwIfAborted()
    const conversation = Object.assign(await launch.open(from, tell), { environmentId, key: launch.key })
    return { conversation, retold }
  }
  if (session === undefined) return start(undefined, 'all')
  try {
    return await start(session.id, session.isSure ? 'nothing' : 'last turn')
  } catch (error) {
    if (!(error instanceof SessionLost)) throw error
    const text = 'The agent program has lost its session. It is told the conversation so far.'
    tell({ type: 'notice', level: 'info', code: 'session_lost', text })
    return start(undefined, 'all')
  }
}

/** One question and its answer. Cancelled: when it resolves, nothing that the answer started is alive. */
async function ask(
  conversation: ShelvedConversation,
  { name }: Launch,
  turn: Turn,
  { retold, signal, tell }: { retold: Retold; signal: AbortSignal; tell: Tell },
): Promise<{ end: EngineEnd; isLost: boolean }> {
  const { program } = conversation
  let hasSaid = false
  let hasCalled = false
  const listen: Tell = event => {
    hasSaid = true
    hasCalled ||= event.type === 'tool-call' || event.type === 'tool-input'
    tell(event)
  }
  const keep = (isSure: boolean) => {
    const engineSessionId = writeSession(name, { id: conversation.sessionId, isSure }, turn)
    tell({ type: 'session', engineSessionId })
  }
  keep(false)
  const asking = conversation.ask(promptOf(turn, retold), listen)
  const end = await endOrAbort(asking, signal)
  if (!signal.aborted) {
    if (program.isAlive) keep(true)
    return { end: end ?? cancelled, isLost: !program.isAlive && !hasSaid && end?.status === 'failed' }
  }
  conversation.interrupt()
  const isAnswered = await within(INTERRUPT_MS, asking)
  // Programs kill what they know of. What a tool has started and sent away, only the sandbox can find.
  if (!isAnswered || hasCalled || !conversation.tellsCallsFirst) await program.kill()
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

const within = (ms: number, work: Promise<unknown>): Promise<boolean> =>
  new Promise(resolve => {
    const timer = setTimeout(() => resolve(false), ms)
    void work.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
