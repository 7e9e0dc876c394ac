import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import type { Schemas } from '../api/client.ts'
import { count, usd } from '../parts/format.ts'
import { Scroll } from '../parts/scroll.tsx'

type Group = Schemas['Usage']['groups'][number]

const ROW_PX = 37
const UNSEEN_ROWS = 10
const COLUMNS = ['Calls', 'Input tokens', 'From the cache', 'Output tokens', 'Cost'] as const

/** Shows the groups in their order. Of thousands, the page only has the rows near the visible part. */
export function UsageTable({ groupBy, groups }: { groupBy: string; groups: readonly Group[] }) {
  const body = useRef<HTMLTableSectionElement>(null)
  const [top, setTop] = useState(0)
  // The part above the table changes its height.
  useLayoutEffect(() => {
    const measured = (body.current?.getBoundingClientRect().top ?? 0) + window.scrollY
    if (Math.abs(measured - top) >= 1) setTop(measured)
  })
  const rows = useWindowVirtualizer({
    count: groups.length,
    estimateSize: () => ROW_PX,
    overscan: UNSEEN_ROWS,
    scrollMargin: top,
  })
  const seen = rows.getVirtualItems()
  const [before, after] = [(seen[0]?.start ?? top) - top, rows.getTotalSize() - ((seen.at(-1)?.end ?? top) - top)]
  return (
    <Scroll label="Usage, as a table" className="card">
      <table className="usage" aria-rowcount={groups.length + 1}>
        <thead>
          <tr>
            <th scope="col">{groupBy}</th>
            {COLUMNS.map(name => (
              <th key={name} scope="col" className="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          <Gap height={before} />
          {seen.map(({ index }) => {
            const group = groups[index]
            return group && <Row key={group.key ?? ''} groupBy={groupBy} group={group} index={index} />
          })}
          <Gap height={after} />
        </tbody>
      </table>
    </Scroll>
  )
}

/** Takes the place of the rows that are not on the page. */
function Gap({ height }: { height: number }) {
  if (height <= 0) return null
  return (
    <tr className="gap">
      <td colSpan={COLUMNS.length + 1} style={{ height }} />
    </tr>
  )
}

function Row({ groupBy, group, index }: { groupBy: string; group: Group; index: number }) {
  return (
    <tr aria-rowindex={index + 2}>
      <th scope="row">
        <Name groupBy={groupBy} group={group} />
      </th>
      <td className="number">{count(group.calls)}</td>
      <td className="number">{count(group.inputTokens)}</td>
      <td className="number">{count(group.cacheReadTokens)}</td>
      <td className="number">{count(group.outputTokens)}</td>
      <td className="number">{usd(group.costUsd)}</td>
    </tr>
  )
}

/** Returns a group's name for people, and its link. */
function Name({ groupBy, group: { key, name, sandboxId } }: { groupBy: string; group: Group }): ReactNode {
  if (groupBy === 'agent' && key) return <Link href={`/agents/${key}`}>{key}</Link>
  if (groupBy === 'key') return name ?? (key === null ? "the configuration's key" : `${key}, deleted`)
  if (groupBy === 'thread' && !sandboxId) return `${key}, deleted`
  if (groupBy === 'thread') return <Link href={`/sandboxes/${sandboxId}/threads/${key}`}>{name ?? key}</Link>
  return key ?? '–'
}
