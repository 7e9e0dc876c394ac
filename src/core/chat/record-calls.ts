import type { Database } from 'bun:sqlite'
import { insertApproval, listApprovalsOf, useApproval } from '../../db/approvals.ts'
import { insertClientCall } from '../../db/client-calls.ts'
import { forgetTries, saveWaitingReply, useAnswers, withdrawCall } from '../../db/waiting-replies.ts'
import type { ClientTool, Continuation } from '../../plugin-api/index.ts'
import type { RunInit } from '../../runs/run-init.ts'
import { storable } from '../../stream/storable.ts'
import { toBudgetCallId } from './budget-approvals.ts'
import type { RunPlace, RunRequest } from './run-request.ts'

interface RecordInit {
  request: RunRequest
  clientTools: Readonly<Record<string, ClientTool>>
  continues: Continuation | undefined
}

const DAY_MS = 86_400_000

/**
 * Keeps the calls that a run leaves open, in the transaction that stores their chunks: what a reader sees asked can be
 * answered, also after a crash. `continues`: what the run was given. A refusal or an output has had its effect with the
 * first event of the engine's, an approval with the `tool-begin` of its call.
 */
export function createRecord(
  db: Database,
  { agent, sandbox, thread }: RunPlace,
  { request, clientTools, continues }: RecordInit,
): NonNullable<RunInit['record']> {
  const calls = new Map<string, { name: string; input: unknown }>()
  for (const { type, toolCallId, input } of continues?.reply.parts ?? []) {
    if (typeof toolCallId === 'string') calls.set(toolCallId, { name: type.slice('tool-'.length), input })
  }
  const { approvalTimeoutMs = DAY_MS, clientToolTimeoutMs = DAY_MS } = agent.options
  const after = (timeoutMs: number) => new Date(Date.now() + timeoutMs).toISOString()
  const answered = continues && { threadId: thread.id, messageId: continues.reply.id }
  const asked = new Set<string>()
  return (event, { id: runId, messageId }) => {
    const threadId = thread.id
    if (answered) useAnswers(db, answered)
    switch (event.type) {
      case 'tool-input':
        if (!calls.has(event.callId)) calls.set(event.callId, { name: event.name, input: null })
        return
      case 'tool-call': {
        const { callId: toolCallId } = event
        const name = calls.get(toolCallId)?.name ?? event.name
        const input = storable(event.input)
        calls.set(toolCallId, { name, input })
        if (!Object.hasOwn(clientTools, name)) return
        asked.add(toolCallId)
        saveWaitingReply(db, { threadId, messageId }, request)
        const expiresAt = after(clientToolTimeoutMs)
        insertClientCall(db, { threadId, messageId, runId, toolCallId, tool: name, input, expiresAt })
        return
      }
      case 'approval-request': {
        const { callId: toolCallId, approvalId, reason } = event
        const { name = '', input = null } = calls.get(toolCallId) ?? {}
        const { teamId, id: sandboxId } = sandbox
        const expiresAt = after(approvalTimeoutMs)
        const place = { teamId, agentSlug: agent.slug, sandboxId, threadId, runId, messageId }
        asked.add(toolCallId)
        saveWaitingReply(db, { threadId, messageId }, request)
        insertApproval(db, {
          ...{
            id: approvalId,
            ...place,
            toolCallId,
            kind: toolCallId === toBudgetCallId(runId) ? 'budget' : 'tool',
            tool: name,
            input,
            expiresAt,
          },
          ...(reason !== undefined && { reason }),
        })
        return
      }
      case 'tool-begin':
      case 'tool-result': {
        // The engine answers itself what it has asked.
        if (asked.has(event.callId)) withdrawCall(db, { threadId, messageId, toolCallId: event.callId })
        for (const key of answered ? [answered] : [])
          for (const approval of listApprovalsOf(db, key.threadId, key.messageId))
            if (approval.toolCallId === event.callId && approval.status === 'approved') {
              useApproval(db, approval.id)
              forgetTries(db, key)
            }
        return
      }
    }
  }
}
