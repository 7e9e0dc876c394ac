import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { memo, useDeferredValue, useState } from 'react'
import { Link } from 'wouter'
import { api, type Schemas, take } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { bytes } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'
import { SandboxStatus } from '../parts/status.tsx'
import { Time } from '../parts/time.tsx'
import { WindowedList } from '../parts/windowed-list.tsx'
import './list.css'

const PAGE = '100'
const ROW_PX = 64
const LOOK_MS = 10_000

/** Lists the sandboxes of the team, newest first. */
export default function SandboxList() {
  const [words, setWords] = useState('')
  const [agent, setAgent] = useState('')
  const q = useDeferredValue(words.trim())
  const agents = useQuery({ queryKey: ['agents'], queryFn: () => take(api.GET('/v1/agents')) })
  const pages = useInfiniteQuery({
    queryKey: ['sandboxes', 'list', q, agent],
    queryFn: ({ pageParam }) => {
      const query = { limit: PAGE, ...(q && { q }), ...(agent && { agent }), ...(pageParam && { before: pageParam }) }
      return take(api.GET('/v1/sandboxes', { params: { query } }))
    },
    placeholderData: before => before,
    // No event tells what a sandbox uses, so that the page asks again, but only while the list has one page.
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? LOOK_MS : false),
    initialPageParam: '',
    getNextPageParam: ({ nextBefore }) => nextBefore ?? undefined,
  })
  const sandboxes = pages.data?.pages.flatMap(page => page.sandboxes) ?? []
  return (
    <section className="stack">
      <div className="row spread">
        <h1>Sandboxes</h1>
        <Link href="/new" className="button primary">
          New chat
        </Link>
      </div>
      <search className="row">
        <label className="field grow">
          <span className="visually-hidden">A part of an id</span>
          <input
            type="search"
            placeholder="Search by a part of the id"
            value={words}
            onChange={event => setWords(event.target.value)}
          />
        </label>
        <label className="field inline">
          <span>Agent</span>
          <select value={agent} onChange={event => setAgent(event.target.value)}>
            <option value="">all</option>
            {agents.data?.agents.map(({ slug, name }) => (
              <option key={slug} value={slug}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </search>
      {pages.error && <Problem error={pages.error} retry={() => void pages.refetch()} />}
      {pages.isSuccess && sandboxes.length === 0 && (
        <Empty title={q || agent ? 'No sandbox is like that' : 'No sandboxes yet'}>
          A chat makes one, and so does the API.
        </Empty>
      )}
      <WindowedList
        label="Sandboxes"
        items={sandboxes}
        keyOf={({ id }) => id}
        rowHeight={ROW_PX}
        render={sandbox => <Row {...sandbox} />}
        more={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined}
      />
    </section>
  )
}

/** Shows a size in use, if it is known. */
const Size = ({ of, what }: { of: number | null; what: string }) =>
  of !== null && (
    <span className="block">
      {bytes(of)} <span className="visually-hidden">of </span>
      {what}
    </span>
  )

/** Draws a row once: while a list scrolls, its rows stay as they are. */
const Row = memo(function Row(sandbox: Schemas['SandboxSummary']) {
  const { id, agent, status, isRunning, use, provider, isolation, createdAt } = sandbox
  return (
    <Link href={`/sandboxes/${id}`} className="item sandbox">
      <span className="grow">
        <strong className="cut block">{agent.name}</strong>
        <span className="hint mono cut block">{id}</span>
      </span>
      <span className="hint provider">
        <span className="block">{provider}</span>
        {isolation.kind && <span className="block">{isolation.kind}</span>}
      </span>
      {use && (
        <span className="hint use">
          <Size of={use.memoryBytes} what="memory" />
          <Size of={use.diskBytes} what="disk" />
        </span>
      )}
      <SandboxStatus of={{ status, isRunning }} />
      <span className="hint">
        <Time at={createdAt} />
      </span>
    </Link>
  )
})
