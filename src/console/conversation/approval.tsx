import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api, take } from '../api/client.ts'
import { Problem } from '../parts/problem.tsx'
import type { ThreadPlace } from './place.ts'

export interface ApprovalProps {
  place: ThreadPlace
  approvalId: string
  refresh: () => Promise<void>
}

interface Answer {
  approved: boolean
  remember?: 'thread' | 'agent'
}

/** Asks a person whether a call may be made. */
export function Approval({ approvalId, refresh }: ApprovalProps) {
  const [reason, setReason] = useState('')
  const answering = useMutation({
    mutationFn: ({ approved, remember }: Answer) =>
      take(
        api.POST('/v1/approvals/{approvalId}', {
          params: { path: { approvalId } },
          body: { approved, ...(reason && { reason }), ...(remember && { remember }) },
        }),
      ),
    onSettled: refresh,
  })
  const button = (name: string, answer: Answer, className = '') => (
    <button type="button" className={className} disabled={answering.isPending} onClick={() => answering.mutate(answer)}>
      {name}
    </button>
  )
  return (
    <fieldset className="approval stack">
      <legend>May the agent do this?</legend>
      <label className="field">
        <span>Reason, for a denial</span>
        <input maxLength={2000} value={reason} onChange={event => setReason(event.target.value)} />
      </label>
      <div className="row">
        {button('Approve', { approved: true }, 'primary')}
        {button('Deny', { approved: false }, 'danger')}
        {button('Always in this thread', { approved: true, remember: 'thread' })}
        {button('Always for this agent', { approved: true, remember: 'agent' })}
      </div>
      {answering.error && <Problem error={answering.error} />}
    </fieldset>
  )
}
