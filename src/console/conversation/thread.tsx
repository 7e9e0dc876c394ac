import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, take } from '../api/client.ts'
import { shortId } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'
import { Chat } from './chat.tsx'
import './conversation.css'
import type { ThreadPlace } from './place.ts'
import { ThreadMenu } from './thread-menu.tsx'
import { useThread } from './use-thread.ts'

/** One conversation, as the agent's user sees it. */
export default function ThreadPage({ params }: { params: { sandboxId: string; threadId: string } }) {
  const { sandboxId, threadId } = params
  const sandbox = useQuery({
    queryKey: ['sandbox', sandboxId],
    queryFn: () => take(api.GET('/v1/sandboxes/{sandboxId}', { params: { path: { sandboxId } } })),
  })
  const place: ThreadPlace = { sandboxId, threadId, agent: sandbox.data?.agent.slug ?? '' }
  const thread = useThread(place)
  const problem = sandbox.error ?? thread.error
  return (
    <section className="thread">
      <header className="row spread">
        <div className="grow">
          <h1 className="cut">{thread.data?.name ?? 'Conversation'}</h1>
          <p className="hint">
            {sandbox.data?.agent.name} in <Link href={`/sandboxes/${sandboxId}`}>{shortId(sandboxId)}</Link>
          </p>
        </div>
        <Link href={`/sandboxes/${sandboxId}/threads/${threadId}/runs`} className="button">
          Runs
        </Link>
        {thread.data && <ThreadMenu place={place} name={thread.data.name ?? ''} />}
      </header>
      {problem && <Problem error={problem} retry={() => void Promise.all([sandbox.refetch(), thread.refetch()])} />}
      {sandbox.data && thread.data && (
        <Chat key={threadId} place={place} thread={thread.data} reload={thread.refetch} />
      )}
    </section>
  )
}
