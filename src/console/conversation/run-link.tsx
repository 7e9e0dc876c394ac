import { Link } from 'wouter'
import type { ThreadPlace } from './place.ts'

/** A link to the run that made or continued a reply. */
export function RunLink({ place: { sandboxId, threadId }, metadata }: { place: ThreadPlace; metadata: unknown }) {
  const runId: unknown = typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'runId') : undefined
  if (typeof runId !== 'string') return null
  return <Link href={`/sandboxes/${sandboxId}/threads/${threadId}/runs/${runId}`}>Replay</Link>
}
