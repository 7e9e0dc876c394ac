import type { Sandbox } from '../db/sandboxes.ts'
import type { Watched } from '../runs/registry.ts'
import type { Receipt } from '../runs/run.ts'
import type { Runtime } from '../runtime.ts'
import type { Caller } from './access.ts'
import { threadsOf } from './threads.ts'

/** The youngest active run of the sandbox that the caller may see, or the run that `lastEventId` names. */
export function resumeStream(
  runtime: Runtime,
  caller: Caller,
  sandbox: Sandbox,
  { threadId, lastEventId }: { threadId: string | undefined; lastEventId: string | null },
): Watched | undefined {
  for (const each of threadIds(runtime, caller, sandbox, threadId)) {
    const watched = runtime.runs.resume(sandbox.id, { threadId: each, lastEventId })
    if (watched) return watched
  }
  return undefined
}

/** Cancels every active run of the sandbox, or of one thread, that the caller may see. Resolves when they have ended. */
export async function cancelStream(
  runtime: Runtime,
  caller: Caller,
  sandbox: Sandbox,
  threadId: string | undefined,
): Promise<Receipt[]> {
  const cancelled = threadIds(runtime, caller, sandbox, threadId).map(each => runtime.runs.cancel(sandbox.id, each))
  return (await Promise.all(cancelled)).flat()
}

/** One given thread, all of them (undefined), or those of an end user: first the ones that run, the youngest run first. */
function threadIds(
  runtime: Runtime,
  caller: Caller,
  sandbox: Sandbox,
  threadId: string | undefined,
): (string | undefined)[] {
  if (threadId !== undefined || caller.token?.userId === undefined) return [threadId]
  const seen = new Set(threadsOf(runtime, caller, sandbox).map(({ id }) => id))
  const running = runtime.runs.active(sandbox.id).map(run => run.threadId)
  return [...new Set(running.filter(id => seen.has(id))).union(seen)]
}
