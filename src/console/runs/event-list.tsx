import { useState } from 'react'
import { count, duration } from '../parts/format.ts'
import { WindowedList } from '../parts/windowed-list.tsx'
import { offsetsOf, type RunEvent } from './use-run-events.ts'

const ROW_PX = 34
const SHORT = 200
/** Longer JSON is cut: an image or the output of a tool may have megabytes. */
const LONGEST = 100_000

/** Shows a run's events in order, each with its JSON. */
export function EventList({ events, more }: { events: readonly RunEvent[]; more: (() => void) | undefined }) {
  const offsets = offsetsOf(events)
  const rows = events.map((event, index) => ({ event, offset: offsets[index] ?? 0 }))
  return (
    <div className="card">
      <WindowedList
        label="Events"
        items={rows}
        keyOf={({ event }) => String(event.seq)}
        rowHeight={ROW_PX}
        render={({ event, offset }) => <Row event={event} offset={offset} />}
        more={more}
      />
    </div>
  )
}

function Row({ event: { seq, at, chunk }, offset }: { event: RunEvent; offset: number }) {
  const [isOpen, setOpen] = useState(false)
  const { type, ...rest } = chunk
  return (
    <details className="event" open={isOpen} onToggle={toggled => setOpen(toggled.currentTarget.open)}>
      <summary>
        <span className="hint numbers seq">{seq}</span>
        <span className="hint numbers at" title={at ?? 'not kept'}>
          {at === null ? '–' : `+${duration(offset)}`}
        </span>
        <span className="mono type">{type}</span>
        <span className="mono cut grow hint">{shorten(rest)}</span>
      </summary>
      {isOpen && <pre className="code">{whole(chunk)}</pre>}
    </details>
  )
}

const shorten = (fields: object): string => {
  const text = JSON.stringify(fields, (_, value) =>
    typeof value === 'string' && value.length > SHORT ? `${value.slice(0, SHORT)}…` : value,
  )
  return text === '{}' ? '' : text.slice(0, SHORT)
}

function whole(chunk: object): string {
  const text = JSON.stringify(chunk, null, 2)
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}\n… ${count(text.length - LONGEST)} more characters`
}
