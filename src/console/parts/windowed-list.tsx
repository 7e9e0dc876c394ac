import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'

export interface WindowedListProps<Item> {
  label: string
  items: readonly Item[]
  keyOf: (item: Item) => string
  render: (item: Item) => ReactNode
  /** About how high a row is, in pixels. */
  rowHeight: number
  /** Asks for the next page, when the end comes near. The last page has no such function. */
  more?: (() => void) | undefined
}

/** Rows of the end of the list that may be unseen when the next page is asked for. */
const AHEAD = 10

/** A list of any length: only the rows near what is seen are on the page. */
export function WindowedList<Item>({ label, items, keyOf, render, rowHeight, more }: WindowedListProps<Item>) {
  const list = useRef<HTMLUListElement>(null)
  const [top, setTop] = useState(0)
  useLayoutEffect(() => setTop(list.current?.offsetTop ?? 0), [])
  // A new function would have all rows counted anew with each step of a scroll.
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
