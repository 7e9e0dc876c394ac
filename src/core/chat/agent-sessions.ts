import { listLogs } from '../../db/agent-logs.ts'
import { listSandboxes } from '../../db/sandboxes.ts'
import { listThreads, threadUsage } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { AgentLog } from '../../model/agent-log.ts'
import type { Sandbox, SandboxPage } from '../../model/sandbox.ts'
import type { Thread, ThreadUsage } from '../../model/thread.ts'
import type { Caller } from '../access/caller.ts'
import { getVersionedAgent } from '../agents/agents.ts'
import type { Runtime } from '../runtime.ts'
import { getSandbox } from '../sandboxes/sandboxes.ts'
import { describeThread, getThread } from './threads.ts'

/** A sandbox of an agent with what its threads have used. */
export interface Session {
  sandbox: Sandbox
  threads: (Thread & { usage: ThreadUsage })[]
}

const LOG_LINES = 200

/** A page of an agent's sandboxes, newest first, and the newest lines of its log. */
export function listSessions(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  page: SandboxPage,
): { agentId: string; sessions: Session[]; logs: AgentLog[] } {
  const { agent } = getVersionedAgent(runtime, caller, slug)
  const sandboxes = listSandboxes(runtime.db, caller.teamId, { ...page, agents: [slug] })
  const sessions = sandboxes.map(sandbox => toSession(runtime, sandbox))
  return { agentId: agent.id, sessions, logs: listLogs(runtime.db, agent.id, LOG_LINES) }
}

/** One of them. Throws sandbox_not_found, also for one of another agent. */
export function getSession(runtime: Runtime, caller: Caller, slug: string, id: string): Session & { agentId: string } {
  const { agent } = getVersionedAgent(runtime, caller, slug)
  const sandbox = getSandbox(runtime, caller, id)
  if (sandbox.agentSlug !== slug) throw new ApiError('sandbox_not_found', 'There is no such sandbox.')
  return { ...toSession(runtime, sandbox), agentId: agent.id }
}

/** A thread of it, with its messages. */
export const getSessionThread = (runtime: Runtime, caller: Caller, { sandbox }: Session, threadId: string) =>
  describeThread(runtime, getThread(runtime, caller, sandbox, threadId))

const toSession = ({ db }: Runtime, sandbox: Sandbox): Session => ({
  sandbox,
  threads: listThreads(db, sandbox.id).map(thread => ({ ...thread, usage: threadUsage(db, thread.id) })),
})
