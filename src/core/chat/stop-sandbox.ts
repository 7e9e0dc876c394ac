import { listThreadsWithQueue } from '../../db/queued-messages.ts'
import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import { type Caller, causeOf } from '../access/caller.ts'
import { stopQueues } from '../queue/queue.ts'
import type { Runtime } from '../runtime.ts'
import { noteStops } from '../sandboxes/note-stops.ts'

/**
 * Cancels a sandbox's runs and ends its processes. Files, threads and queued messages stay, and the next use starts it
 * again. Throws conflict when its backend cannot stop a sandbox without deleting it.
 */
export async function stopSandbox(runtime: Runtime, sandbox: Sandbox, caller: Caller): Promise<void> {
  const { db, environments, runs, observers } = runtime
  const environment = await environments.get(sandbox)
  if (!environment.pause) {
    throw new ApiError('conflict', `The backend ${sandbox.backend} cannot stop a sandbox without deleting it.`)
  }
  await noteStops(runtime)
  const stopping = async () => stopQueues(runtime, listThreadsWithQueue(db, sandbox.id), 'keep')
  // Everything is stopped first; an error of the database is thrown at the end.
  const stored = await Promise.allSettled([stopping(), runs.cancel(sandbox.id)])
  await environment.pause()
  const { id: sandboxId, teamId } = sandbox
  observers.observe({ type: 'sandbox.stopped', teamId, sandboxId, cause: causeOf(caller) })
  await noteStops(runtime)
  for (const each of stored) if (each.status === 'rejected') throw each.reason
}
