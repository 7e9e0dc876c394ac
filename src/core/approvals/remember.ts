import { forgetRule, listRules, rememberRule } from '../../db/remembered-rules.ts'
import { findSandbox } from '../../db/sandboxes.ts'
import { ApiError } from '../../errors.ts'
import type { Approval, Remember } from '../../model/approval.ts'
import type { RememberedRule } from '../../model/remembered-rule.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import { narrowRule } from '../permissions/narrow-rule.ts'
import type { Runtime } from '../runtime.ts'

/**
 * Allows calls like this one from now on, as narrowly as a rule can say it. Throws forbidden for a token that would decide
 * for a whole agent, and invalid_request when no rule can say it.
 */
export function rememberApproval(runtime: Runtime, caller: Caller, approval: Approval, scope: Remember): void {
  if (scope === 'agent') assertKey(caller, 'decide for an agent')
  const { teamId, agentSlug, sandboxId, threadId, kind, tool, input } = approval
  const sandbox = findSandbox(runtime.db, teamId, sandboxId)
  const place = { cwd: sandbox?.cwd ?? '/', home: sandbox?.envs.HOME ?? '/home/user' }
  const rule = kind === 'tool' ? narrowRule(tool, input, place) : undefined
  if (rule === undefined) {
    throw new ApiError('invalid_request', 'remember: no rule can allow such a call; approve it without', {
      field: 'remember',
    })
  }
  rememberRule(runtime.db, { teamId, agentSlug, threadId: scope === 'thread' ? threadId : null, rule })
}

/** What people have approved for good, oldest first. Throws forbidden for a token. */
export function listRemembered(runtime: Runtime, caller: Caller, slug: string): RememberedRule[] {
  assertKey(caller, 'see rules')
  getAgent(runtime, caller, slug)
  return listRules(runtime.db, caller.teamId, slug)
}

/** Throws not_found. From now on such a call asks again. */
export function forgetRemembered(runtime: Runtime, caller: Caller, slug: string, id: string): void {
  assertKey(caller, 'change rules')
  getAgent(runtime, caller, slug)
  if (!forgetRule(runtime.db, caller.teamId, slug, id)) throw new ApiError('not_found', 'There is no such rule.')
}
