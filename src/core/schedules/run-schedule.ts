import { isBusy, writeWhenFree } from '../../db/busy.ts'
import { findSandbox } from '../../db/sandboxes.ts'
import { beginScheduleRun, findRunOfThread } from '../../db/schedule-runs.ts'
import { findThread, insertThread } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Schedule, ScheduleRun, ScheduleRunEnd } from '../../model/schedule.ts'
import { describeFault } from '../../runs/fault.ts'
import type { Caller } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import { startChat } from '../chat/chat.ts'
import { commit } from '../commit.ts'
import type { Runtime } from '../runtime.ts'
import { untilExit } from '../sandboxes/process-events.ts'
import { listProcesses, type ProcessesUse, startProcess, useProcesses } from '../sandboxes/processes.ts'
import { createSandbox } from '../sandboxes/sandboxes.ts'
import { callerOfSchedule } from './due.ts'

/** How long a run's own sandbox is kept after its last use, when its agent does not say. */
const KEPT_MS = 86_400_000

/** One run of a schedule and what it needs. */
interface Work {
  runtime: Runtime
  schedule: Schedule
  run: ScheduleRun
  /** Aborts when the run's time is up. */
  late: AbortSignal
  /** Aborts when the run's time is up, and when the server closes. */
  signal: AbortSignal
}

/**
 * Runs a schedule once, to its end; a run that an earlier server has begun is followed instead. Undefined when the server closes
 * before the end: the next one goes on. Throws only errors that a later try may not meet.
 */
export async function runSchedule(
  runtime: Runtime,
  schedule: Schedule,
  run: ScheduleRun,
  closing: AbortSignal,
): Promise<ScheduleRunEnd | undefined> {
  const { startedAt } = run
  const usedMs = startedAt === undefined ? 0 : Math.max(0, Date.now() - Date.parse(startedAt))
  const late = AbortSignal.timeout(Math.max(0, schedule.timeoutMs - usedMs))
  const work = { runtime, schedule, run, late, signal: AbortSignal.any([closing, late]) }
  try {
    return await (schedule.command === undefined ? runPrompt(work) : runCommandLine(work, schedule.command))
  } catch (error) {
    if (closing.aborted || (error instanceof ApiError && error.code === 'shutting_down')) return undefined
    if (late.aborted) return timedOut(schedule)
    if (isBusy(error) || (error instanceof ApiError && (error.code === 'server_busy' || isForItsTurn(error))))
      throw error
    if (error instanceof ApiError) return { status: 'failed', error: error.message }
    runtime.log(`${run.id}: ${describeFault(error)}`, 'error')
    return { status: 'failed', error: `It failed unexpectedly (${run.id}).` }
  }
}

/** Whether the run has to wait because as many runs of its key go on as the key may have. */
export const isForItsTurn = ({ reached }: ApiError): boolean => reached?.limit.endsWith('.runs') === true

const timedOut = ({ timeoutMs }: Schedule): ScheduleRunEnd => ({
  status: 'timed_out',
  error: `It took longer than ${timeoutMs} ms.`,
})

/**
 * Each run has its own thread, whose id is stored before the thread is made: the thread's contents show whether the agent has
 * begun.
 */
async function runPrompt(work: Work): Promise<ScheduleRunEnd | undefined> {
  const { runtime, schedule, run, late, signal } = work
  const { db, runs } = runtime
  const { threadId } = run
  const begun = findRunOfThread(db, threadId)
  if (!begun) {
    const caller = callerOfSchedule(db, schedule)
    const { id: sandboxId } = await findOrMakeSandbox(work, caller)
    const started = await commit(db, async () => {
      if (!findThread(db, sandboxId, threadId)) insertThread(db, { id: threadId, sandboxId, name: schedule.name })
      const parts = [{ type: 'text', text: schedule.prompt ?? '' }]
      const messages = [{ role: 'user', parts } as const]
      const place = { sandboxId, threadId, background: true, options: {} }
      return await startChat(runtime, caller, schedule.agentSlug, { ...place, messages }, signal)
    })
    await writeWhenFree(db, () => beginScheduleRun(db, run.id, { runId: started.run.id }))
  } else if (run.runId === undefined) await writeWhenFree(db, () => beginScheduleRun(db, run.id, { runId: begun.id }))
  const active = runs.activeOn(threadId)
  if (!active || (await settlesBefore(signal, active.finished))) return endOfThread(runtime, threadId)
  if (!late.aborted) return undefined
  await runs.cancel(active.sandboxId, threadId)
  return timedOut(schedule)
}

function endOfThread({ db }: Runtime, threadId: string): ScheduleRunEnd {
  const found = findRunOfThread(db, threadId)
  if (!found) return { status: 'cancelled', error: 'Its sandbox or thread was deleted.' }
  const status = ends.find(each => each === found.status) ?? 'interrupted'
  return { status, ...(found.error !== null && { error: found.error }) }
}

const ends = ['completed', 'waiting', 'failed', 'cancelled', 'interrupted'] as const

/** A process outlives the server and is named after the run, so that the next server finds it. */
async function runCommandLine(work: Work, command: string): Promise<ScheduleRunEnd | undefined> {
  const { runtime, schedule, run, signal } = work
  const { db } = runtime
  const caller = callerOfSchedule(db, { ...schedule, keep: schedule.keep || run.status === 'running' })
  const sandbox = await findOrMakeSandbox(work, caller)
  using use = await useProcesses(runtime, caller, sandbox.id)
  const { environment } = use
  const name = `schedule ${run.id}`
  const known = (await listProcesses(runtime, use)).find(each => each.name === name)
  const note = (pid?: number) =>
    writeWhenFree(db, () => beginScheduleRun(db, run.id, { ...(pid !== undefined && { pid }) }))
  if (!known && run.status === 'running') {
    return { status: 'interrupted', error: 'The server stopped during this command.' }
  }
  signal.throwIfAborted()
  // On a backend whose processes end with the server, a later server could not tell whether the command has begun, so this is
  // stored first.
  if (!known && !environment.processes) await note()
  const wanted = { command, name, env: { THREADBOX_SCHEDULE_RUN: run.id } }
  const info = known ?? (await startProcess(runtime, caller, sandbox.id, wanted))
  await note(info.pid)
  return await endOfProcess(work, use, info.pid)
}

async function endOfProcess(
  { runtime, schedule, late, signal }: Work,
  { sandbox, processes }: ProcessesUse,
  pid: number,
): Promise<ScheduleRunEnd | undefined> {
  const exit = await untilExit(processes, pid, signal)
  if (exit) return { status: exit.exitCode === 0 ? 'completed' : 'failed', exitCode: exit.exitCode }
  if (late.aborted) {
    // The process may end by itself at this moment.
    await processes.signal(pid, 'SIGKILL').catch(() => {})
    return timedOut(schedule)
  }
  if (signal.aborted) return undefined
  const isGone = !findSandbox(runtime.db, sandbox.teamId, sandbox.id)
  return {
    status: 'cancelled',
    error: isGone ? 'Its sandbox was deleted.' : 'Its process was removed, or its sandbox stopped.',
  }
}

/** Throws as `createSandbox` does, and sandbox_not_found. */
async function findOrMakeSandbox({ runtime, schedule, run, signal }: Work, caller: Caller): Promise<Sandbox> {
  const found = findSandbox(runtime.db, schedule.teamId, run.sandboxId)
  if (found && run.status === 'running') return found
  const agent = getAgent(runtime, caller, schedule.agentSlug)
  if (found) return found
  if (schedule.sandbox !== 'new' && schedule.sandbox !== 'same')
    throw new ApiError('sandbox_not_found', 'The sandbox of the schedule is gone.')
  const timeoutMs = agent.sandbox.timeoutMs ?? KEPT_MS
  const wanted = { agent: agent.slug, ...(schedule.sandbox === 'new' && { timeoutMs }) }
  return await createSandbox(runtime, caller, wanted, signal, undefined, run.sandboxId)
}

/** Resolves to false when the abort comes first. */
async function settlesBefore(signal: AbortSignal, work: Promise<unknown>): Promise<boolean> {
  const aborted = Promise.withResolvers<boolean>()
  const abort = () => aborted.resolve(false)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    return await Promise.race([work.then(() => true), aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
