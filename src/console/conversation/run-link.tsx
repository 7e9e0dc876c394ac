import { Link } from 'wouter'
import type { ThreadPlace } from './place.ts'

/** To the run that made a reply, or went on with it. */
export function RunLink({ place: { sandboxId, threadId }, metadata }: { place: ThreadPlace; metadata: unknown }) {
  const runId: unknown = typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'runId') : undefined
  if (typeof runId !== 'string') return null
  return <Link href={`/sandboxes/${sandboxId}/threads/${threadId}/runs/${runId}`}>Replay</Link>
}
