import { findApproval, listApprovals } from '../../db/approvals.ts'
import { inTransaction } from '../../db/open.ts'
import { ApiError } from '../../errors.ts'
import type { Approval, ApprovalPage, Decision, Remember } from '../../model/approval.ts'
import { assertMayApprove, type Caller, causeOf } from '../access/caller.ts'
import { keepChange } from '../access/keep-change.ts'
import { storeDecision } from '../chat/answers.ts'
import { continueReply } from '../chat/continue.ts'
import { getThread } from '../chat/threads.ts'
import type { Runtime } from '../runtime.ts'
import { getSandbox } from '../sandboxes/sandboxes.ts'
import { sweepWaiting } from './expire.ts'
import { rememberApproval } from './remember.ts'

/** A page of what the caller may see, newest first. */
export const listVisibleApprovals = (
  { db }: Runtime,
  { teamId, token }: Caller,
  page: Omit<ApprovalPage, 'userId' | 'agents'>,
): Approval[] =>
  listApprovals(db, teamId, {
    ...page,
    ...(token?.userId !== undefined && { userId: token.userId }),
    ...(token?.agents && { agents: token.agents }),
  })

/** Throws approval_not_found, also for one of another team or user. */
export function getApproval(runtime: Runtime, caller: Caller, id: string): Approval {
  const approval = findApproval(runtime.db, caller.teamId, id)
  if (!approval || !isVisible(runtime, caller, approval)) {
    throw new ApiError('approval_not_found', 'There is no such approval.')
  }
  return approval
}

function isVisible(runtime: Runtime, caller: Caller, { sandboxId, threadId }: Approval): boolean {
  try {
    getThread(runtime, caller, getSandbox(runtime, caller, sandboxId), threadId)
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

/** What a person decides. */
export interface Answer {
  approved: boolean
  reason?: string
  remember?: Remember
}

/**
 * Stores a decision. When it was the last that the reply waits for, the reply goes on in the background; both are one
 * transaction. Throws approval_not_found, forbidden for a token that may not approve, and already_answered with the first
 * answer.
 */
export async function answerApproval(runtime: Runtime, caller: Caller, id: string, answer: Answer): Promise<Approval> {
  assertMayApprove(caller, getApproval(runtime, caller, id))
  if (answer.remember && !answer.approved) {
    throw new ApiError('invalid_request', 'remember: only what is approved is remembered', { field: 'remember' })
  }
  await runtime.diskSpace.assertEnough()
  if (getApproval(runtime, caller, id).expiresAt <= new Date().toISOString()) await sweepWaiting(runtime)
  return inTransaction(runtime.db, () => {
    const approval = getApproval(runtime, caller, id)
    if (!storeDecision(runtime.db, approval, toDecision(caller, answer))) throw alreadyAnswered(approval)
    if (answer.remember) rememberApproval(runtime, caller, approval, answer.remember)
    continueReply(runtime, approval, { background: true, cause: causeOf(caller) })
    const { sandboxId, threadId, kind } = approval
    const target = { approvalId: id, sandboxId, threadId }
    const detail = { kind, approved: answer.approved, remember: answer.remember }
    keepChange(runtime, caller, { action: 'approval.answered', target, detail })
    return getApproval(runtime, caller, id)
  })
}

const toDecision = (caller: Caller, { approved, reason, remember }: Answer): Decision => {
  const answeredBy = caller.token?.userId ?? caller.keyId
  return {
    status: approved ? 'approved' : 'denied',
    ...(reason !== undefined && { reason }),
    ...(remember && { remember }),
    ...(answeredBy !== undefined && { answeredBy }),
  }
}

const alreadyAnswered = (approval: Approval) =>
  new ApiError('already_answered', `This approval is ${approval.status} already.`, { approval: showApproval(approval) })

/** An approval as callers see it. */
export const showApproval = ({ teamId: _, agentSlug, usedAt: __, ...approval }: Approval) => ({
  ...approval,
  agent: agentSlug,
})
