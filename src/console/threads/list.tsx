import { useInfiniteQuery } from '@tanstack/react-query'
import { memo, useDeferredValue, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { api, type Schemas, take } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { Status } from '../parts/status.tsx'
import { Time } from '../parts/time.tsx'
import { WindowedList } from '../parts/windowed-list.tsx'

const PAGE = '100'
const ROW_PX = 64
const states = ['active', 'streaming', 'waiting', 'completed', 'error', 'cancelled'] as const
type State = (typeof states)[number]

const isState = (text: string | null): text is State => states.includes(text as State)

/** Lists the conversations of all sandboxes, newest first. */
export default function ThreadList() {
  const [search, setSearch] = useSearchParams()
  const given = search.get('status')
  const status = isState(given) ? given : undefined
  const [words, setWords] = useState(search.get('q') ?? '')
  const q = useDeferredValue(words.trim())
  const pages = useInfiniteQuery({
    queryKey: ['threads', status, q],
    queryFn: ({ pageParam }) => {
      const query = { limit: PAGE, ...(q && { q }), ...(status && { status }), ...(pageParam && { before: pageParam }) }
      return take(api.GET('/v1/threads', { params: { query } }))
    },
    initialPageParam: '',
    getNextPageParam: ({ nextBefore }) => nextBefore ?? undefined,
    placeholderData: before => before,
  })
  const threads = pages.data?.pages.flatMap(page => page.threads) ?? []
  const isNarrow = q !== '' || status !== undefined
  return (
    <section className="stack">
      <div className="row spread">
        <h1>Threads</h1>
        <Link href="/new" className="button primary">
          New chat
        </Link>
      </div>
      <search className="row">
        <label className="field grow">
          <span className="visually-hidden">Words that were said</span>
          <input
            type="search"
            placeholder="Search what was said"
            value={words}
            onChange={event => setWords(event.target.value)}
          />
        </label>
        <label className="field inline">
          <span>State</span>
          <select
            value={status ?? ''}
            onChange={event => setSearch(event.target.value ? { status: event.target.value } : {})}
          >
            <option value="">all</option>
            {states.map(name => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </search>
      {pages.error && <Problem error={pages.error} retry={() => void pages.refetch()} />}
      {pages.isSuccess && threads.length === 0 && (
        <Empty title={isNarrow ? 'No thread is like that' : 'No threads yet'}>
          {isNarrow ? 'Each word has to be in one message.' : 'A thread is a conversation with an agent in a sandbox.'}
        </Empty>
      )}
      <WindowedList
        label="Threads"
        items={threads}
        keyOf={({ id }) => id}
        rowHeight={ROW_PX}
        render={thread => <Row {...thread} />}
        more={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined}
      />
    </section>
  )
}

/** Draws a row once: while a list scrolls, its rows stay as they are. */
const Row = memo(function Row({ id, sandboxId, name, agent, status, updatedAt }: Schemas['FoundThread']) {
  return (
    <Link href={`/sandboxes/${sandboxId}/threads/${id}`} className="item">
      <span className="grow">
        <strong className="cut block">{name ?? 'Without a name'}</strong>
        <span className="hint">{agent.name}</span>
      </span>
      <Status of={status} />
      <span className="hint">
        <Time at={updatedAt} />
      </span>
    </Link>
  )
})
