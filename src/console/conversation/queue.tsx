import { useMutation } from '@tanstack/react-query'
import { api, type Schemas, take } from '../api/client.ts'
import { Problem } from '../parts/problem.tsx'
import type { ThreadPlace } from './place.ts'
import { textOf } from './text-of.ts'

export interface QueueProps {
  place: ThreadPlace
  waiting: readonly Schemas['WaitingMessage'][]
  refresh: () => Promise<void>
}

/** The messages that wait for their turn. */
export function Queue({ place: { sandboxId, threadId }, waiting, refresh }: QueueProps) {
  const path = { sandboxId, threadId }
  const takingBack = useMutation({
    mutationFn: (messageId: string) =>
      take(
        api.DELETE('/v1/sandboxes/{sandboxId}/threads/{threadId}/queue/{messageId}', {
          params: { path: { ...path, messageId } },
        }),
      ),
    onSettled: refresh,
  })
  const resuming = useMutation({
    mutationFn: () => take(api.POST('/v1/sandboxes/{sandboxId}/threads/{threadId}/queue/resume', { params: { path } })),
    onSettled: refresh,
  })
  const problem = takingBack.error ?? resuming.error
  if (waiting.length === 0) return null
  return (
    <section className="queue card stack" aria-label="Messages that wait">
      <div className="row spread">
        <h2>Waiting for their turn</h2>
        <button type="button" onClick={() => resuming.mutate()}>
          Go on
        </button>
      </div>
      {problem && <Problem error={problem} />}
      <ul className="plain stack">
        {waiting.map(({ id, parts, status }) => (
          <li key={id} className="row">
            <span className="badge">{status}</span>
            <span className="grow cut">{textOf(parts)}</span>
            <button type="button" onClick={() => takingBack.mutate(id)}>
              Take back
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}
