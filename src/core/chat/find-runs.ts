import { findRuns as find, listCallsOfMessage, listLoggedCalls } from '../../db/find-runs.ts'
import { findSandbox } from '../../db/sandboxes.ts'
import { ApiError } from '../../errors.ts'
import type { FoundRun, RunEventPage, RunFilter, ToolCall } from '../../model/found-run.ts'
import { readLog } from '../../runs/kept-logs.ts'
import { projectJson } from '../../stream/project.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'

type RunQuery = Pick<RunFilter, 'limit' | 'before' | 'threadId' | 'sandboxId' | 'status'>

const scopeOf = ({ teamId, token }: Caller) => ({
  teamId,
  ...(token?.agents && { agents: token.agents }),
  ...(token?.userId !== undefined && { userId: token.userId }),
})

/** A page of the runs that the caller may see, newest first. A sandbox is named by its id or its environment's. */
export async function findRuns(
  { db }: Runtime,
  caller: Caller,
  { limit, sandboxId, ...query }: RunQuery,
): Promise<{ runs: FoundRun[]; nextBefore: string | null }> {
  const sandbox = sandboxId === undefined ? undefined : findSandbox(db, caller.teamId, sandboxId)
  if (sandboxId !== undefined && !sandbox) return { runs: [], nextBefore: null }
  const within = { ...scopeOf(caller), ...(sandbox && { sandboxId: sandbox.id }) }
  const found = await find(db, { ...query, ...within, limit: limit + 1 })
  const runs = found.slice(0, limit)
  return { runs, nextBefore: found.length > limit ? (runs.at(-1)?.id ?? null) : null }
}

/** A run with the tools of its reply. Throws run_not_found, also for a run that the caller may not see. */
export async function getRun({ db }: Runtime, caller: Caller, id: string): Promise<FoundRun & { tools: ToolCall[] }> {
  const run = await getOwnRun(db, caller, id)
  const { threadId, messageId } = run
  const isActive = run.status === 'active'
  const tools = isActive
    ? await listLoggedCalls(db, id)
    : await listCallsOfMessage(db, { threadId, messageId, runId: id })
  return { ...run, tools }
}

const MAX_PAGE_CHARACTERS = 1024 * 1024

/**
 * Lists the chunks of a run's stream after a given one, in order and in the profile `ai-7`. The chunks of runs that ended more
 * than a week ago are gone. Throws run_not_found, also for a run that the caller may not see.
 */
export async function listRunEvents(
  { db }: Runtime,
  caller: Caller,
  id: string,
  { after, limit }: { after: number; limit: number },
): Promise<RunEventPage> {
  const { status } = await getOwnRun(db, caller, id)
  const rows = await readLog(db, id, { after, limit, maxLength: MAX_PAGE_CHARACTERS })
  const last = rows.at(-1)?.seq
  const events = rows.flatMap(({ seq, atMs, chunk }) => {
    const shown = projectJson(chunk, 'ai-7')
    if (shown === undefined) return []
    return [{ seq, at: atMs === null ? null : new Date(atMs).toISOString(), chunk: JSON.parse(shown) }]
  })
  return { events, nextAfter: last ?? (status === 'active' ? after : null) }
}

async function getOwnRun(db: Runtime['db'], caller: Caller, id: string): Promise<FoundRun> {
  const [run] = await find(db, { ...scopeOf(caller), id, limit: 1 })
  if (!run) throw new ApiError('run_not_found', 'There is no such run.')
  return run
}
