import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'

export interface WindowedListProps<Item> {
  label: string
  items: readonly Item[]
  keyOf: (item: Item) => string
  render: (item: Item) => ReactNode
  /** The approximate height of a row, in pixels. */
  rowHeight: number
  /** Asks for the next page when the end comes near. It is absent on the last page. */
  more?: (() => void) | undefined
}

/** The next page is asked for when this many rows are left below the visible ones. */
const AHEAD = 10

/** Shows a list of any length: the page only has the rows near the visible part. */
export function WindowedList<Item>({ label, items, keyOf, render, rowHeight, more }: WindowedListProps<Item>) {
  const list = useRef<HTMLUListElement>(null)
  const [top, setTop] = useState(0)
  useLayoutEffect(() => setTop(list.current?.offsetTop ?? 0), [])
  // A new function at each step of a scroll would count all rows again.
  const getItemKey = useCallback(
    (index: number) => {
      const item = items[index]
      return item === undefined ? index : keyOf(item)
    },
    [items, keyOf],
  )
  const rows = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => rowHeight,
    overscan: AHEAD,
    scrollMargin: top,
    getItemKey,
  })
  const seen = rows.getVirtualItems()
  const last = seen.at(-1)?.index ?? 0
  useEffect(() => {
    if (last >= items.length - AHEAD) more?.()
  }, [last, items.length, more])

  return (
    <ul ref={list} aria-label={label} className="windowed" style={{ height: rows.getTotalSize() }}>
      {seen.map(({ key, index, start }) => {
        const item = items[index]
        if (item === undefined) return null
        return (
          <li
            key={key}
            ref={rows.measureElement}
            data-index={index}
            aria-setsize={more ? -1 : items.length}
            aria-posinset={index + 1}
            style={{ transform: `translateY(${start - top}px)` }}
          >
            {render(item)}
          </li>
        )
      })}
    </ul>
  )
}
