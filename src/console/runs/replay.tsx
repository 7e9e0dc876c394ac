import { useState } from 'react'
import { MessagePart } from '../conversation/message-part.tsx'
import type { ThreadPlace } from '../conversation/place.ts'
import { Fence } from '../parts/fence.tsx'
import { count, duration } from '../parts/format.ts'
import { Problem } from '../parts/problem.tsx'
import { useReplay } from './use-replay.ts'
import type { RunEvent } from './use-run-events.ts'

const speeds = [1, 4, 16] as const
const nothing = async () => {}

/** Replays the reply of a run. */
export function Replay({ place, events }: { place: ThreadPlace; events: readonly RunEvent[] }) {
  const [speed, setSpeed] = useState<number>(1)
  const replay = useReplay(events, speed)
  const { position, come, isPlaying, message } = replay
  const hasTimes = events.some(({ at }) => at !== null)
  return (
    <div className="stack">
      <div className="card stack replay-controls">
        <div className="row">
          <button type="button" className="primary" onClick={isPlaying ? replay.pause : replay.play}>
            {isPlaying ? 'Pause' : 'Play'}
          </button>
          <fieldset className="row speeds">
            <legend className="visually-hidden">Speed</legend>
            {speeds.map(each => (
              <label key={each} className="speed">
                <input type="radio" name="speed" checked={speed === each} onChange={() => setSpeed(each)} />
                {each}×
              </label>
            ))}
          </fieldset>
          <button type="button" onClick={replay.next} disabled={come === events.length}>
            Next event
          </button>
          <button type="button" onClick={() => replay.jump(replay.duration)} disabled={come === events.length}>
            To the end
          </button>
        </div>
        <label className="field">
          <span className="visually-hidden">Moment of the run</span>
          <input
            type="range"
            min={0}
            max={replay.duration}
            value={Math.round(position)}
            aria-valuetext={`${duration(position)} of ${duration(replay.duration)}`}
            onChange={event => replay.jump(Number(event.target.value))}
          />
        </label>
        <p className="hint numbers">
          {duration(position)} of {duration(replay.duration)}, {count(come)} of {count(events.length)} events
          {!hasTimes && '. The times of this run were not kept: each event has a moment of its own.'}
        </p>
      </div>
      <article className="message assistant card" aria-label="The reply so far">
        {come === 0 && <p className="hint">Play shows the reply as it came.</p>}
        {message.parts.map((part, index) => (
          // New parts only come after the others.
          // biome-ignore lint/suspicious/noArrayIndexKey: a part has no id, and keeps its place
          <Fence key={index} what="A part of this message">
            <MessagePart place={place} part={part} isLive={come < events.length} isUser={false} refresh={nothing} />
          </Fence>
        ))}
        {message.problem !== undefined && <Problem error={new Error(message.problem)} />}
        {message.isCancelled && <p className="hint">It was cancelled here.</p>}
      </article>
    </div>
  )
}
