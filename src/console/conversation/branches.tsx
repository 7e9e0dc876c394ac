import { useMutation } from '@tanstack/react-query'
import { api, take } from '../api/client.ts'
import type { ChatMessage } from './chat-message.ts'
import type { ThreadPlace } from './place.ts'

export interface BranchesProps {
  place: ThreadPlace
  message: ChatMessage
  isBusy: boolean
  refresh: () => Promise<void>
}

/** Steps through the versions of a conversation from one message on. */
export function Branches({ place: { sandboxId, threadId }, message, isBusy, refresh }: BranchesProps) {
  const { branch, branches } = message
  const switching = useMutation({
    mutationFn: (wanted: string) =>
      take(
        api.PATCH('/v1/sandboxes/{sandboxId}/threads/{threadId}', {
          params: { path: { sandboxId, threadId } },
          body: { branch: wanted },
        }),
      ),
    onSuccess: refresh,
  })
  if (!branch || !branches || branches.length < 2) return null
  const at = branches.indexOf(branch)
  const step = (by: number, label: string, sign: string) => {
    const wanted = branches[at + by]
    return (
      <button
        type="button"
        className="quiet small"
        aria-label={label}
        disabled={wanted === undefined || isBusy || switching.isPending}
        onClick={() => wanted !== undefined && switching.mutate(wanted)}
      >
        {sign}
      </button>
    )
  }
  return (
    <span className="row">
      {step(-1, 'The version before', '‹')}
      <span>
        {at + 1} of {branches.length}
      </span>
      {step(1, 'The version after', '›')}
      {switching.error && <span role="alert">{switching.error.message}</span>}
    </span>
  )
}
