import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, type Schemas, take } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { duration, usd } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'
import { Status } from '../parts/status.tsx'
import { Time } from '../parts/time.tsx'
import { WindowedList } from '../parts/windowed-list.tsx'
import './runs.css'

const PAGE = '100'
const ROW_PX = 64

/** Shows the runs of a conversation, newest first. */
export default function ThreadRuns({ params }: { params: { sandboxId: string; threadId: string } }) {
  const { sandboxId, threadId } = params
  const thread = `/sandboxes/${sandboxId}/threads/${threadId}`
  const pages = useInfiniteQuery({
    queryKey: ['runs', 'thread', threadId],
    queryFn: ({ pageParam }) => {
      const query = { threadId, limit: PAGE, ...(pageParam && { before: pageParam }) }
      return take(api.GET('/v1/runs', { params: { query } }))
    },
    initialPageParam: '',
    getNextPageParam: ({ nextBefore }) => nextBefore ?? undefined,
  })
  const runs = pages.data?.pages.flatMap(page => page.runs) ?? []
  return (
    <section className="stack">
      <header>
        <p className="hint">
          <Link href={thread}>The conversation</Link>
        </p>
        <h1>Runs</h1>
      </header>
      {pages.error && <Problem error={pages.error} retry={() => void pages.refetch()} />}
      {pages.isSuccess && runs.length === 0 && <Empty title="No runs yet">Each reply of the agent is a run.</Empty>}
      <WindowedList
        label="Runs"
        items={runs}
        keyOf={({ id }) => id}
        rowHeight={ROW_PX}
        render={run => <Row href={`${thread}/runs/${run.id}`} {...run} />}
        more={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined}
      />
    </section>
  )
}

function Row({
  href,
  status,
  startedAt,
  durationMs,
  usage,
  model,
  error,
}: Schemas['RunPage']['runs'][number] & { href: string }) {
  const facts = [durationMs !== null && duration(durationMs), usd(usage.totalCostUsd), model]
  return (
    <Link href={href} className="item">
      <span className="grow">
        <strong className="block">
          <Time at={startedAt} />
        </strong>
        <span className="hint cut block">{error ?? facts.filter(Boolean).join(' · ')}</span>
        {error && <span className="hint block">{facts.filter(Boolean).join(' · ')}</span>}
      </span>
      <Status of={status} />
    </Link>
  )
}
