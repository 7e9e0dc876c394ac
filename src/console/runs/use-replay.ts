import { useEffect, useMemo, useRef, useState } from 'react'
import { createReplay, type Replayed } from './replayed-message.ts'
import { offsetsOf, type RunEvent } from './use-run-events.ts'

export interface Replay {
  /** The position in milliseconds after the first event. */
  position: number
  duration: number
  /** The number of events up to this position. */
  come: number
  isPlaying: boolean
  message: Replayed
  play: () => void
  pause: () => void
  jump: (position: number) => void
  next: () => void
}

/** Plays the events of a run at their own speed, or a multiple of it. */
export function useReplay(events: readonly RunEvent[], speed: number): Replay {
  const offsets = useMemo(() => offsetsOf(events), [events])
  const duration = offsets.at(-1) ?? 0
  const [position, setPosition] = useState(-1)
  const [isPlaying, setPlaying] = useState(false)
  const come = countUpTo(offsets, position)
  useEffect(() => {
    if (!isPlaying) return
    let last = performance.now()
    let frame = requestAnimationFrame(function advance(now) {
      const passed = (now - last) * speed
      last = now
      setPosition(before => Math.min(duration, Math.max(before, 0) + passed))
      frame = requestAnimationFrame(advance)
    })
    return () => cancelAnimationFrame(frame)
  }, [isPlaying, speed, duration])
  useEffect(() => {
    if (isPlaying && position >= duration) setPlaying(false)
  }, [isPlaying, position, duration])
  return {
    position: Math.max(position, 0),
    duration,
    come,
    isPlaying,
    message: useMessage(events, come),
    play() {
      if (position >= duration) setPosition(0)
      setPlaying(true)
    },
    pause: () => setPlaying(false),
    jump: setPosition,
    next() {
      setPlaying(false)
      setPosition(offsets[come] ?? duration)
    },
  }
}

/** Goes on from the message of the last draw. A jump back begins again. */
function useMessage(events: readonly RunEvent[], come: number): Replayed {
  const built = useRef({ events, applied: 0, replay: createReplay() })
  return useMemo(() => {
    if (built.current.events[0] !== events[0] || built.current.applied > come)
      built.current = { events, applied: 0, replay: createReplay() }
    const { applied, replay } = built.current
    for (const event of events.slice(applied, come)) replay.apply(event)
    built.current = { events, applied: come, replay }
    return replay.now
  }, [events, come])
}

/** Counts the numbers of a rising list that are not above a limit. */
function countUpTo(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((numbers[middle] ?? 0) <= limit) low = middle + 1
    else high = middle
  }
  return low
}
