import { messageOf } from '../../src/errors.ts'

/** A sandbox's time at E2B, which pauses it when that is up: also when no server is there to do it. */
export interface Lease {
  readonly lengthMs: number
  /** It was just given that. */
  renewed(): void
  used(): void
  /** Until the answer is called, it is in use. */
  hold(): () => void
  /** It may be paused by now. */
  isOver(): boolean
  /** It was paused. */
  ended(): void
  close(): void
}

/** E2B's smaller plan gives no more at a time. */
const LONGEST_MS = 3_600_000
const SHORTEST_MS = 1000
/** Clocks and answers take their time. */
const MARGIN_MS = 250

/** What is asked for at a time. */
export const leaseMs = (idleMs: number): number => Math.min(Math.max(idleMs || LONGEST_MS, SHORTEST_MS), LONGEST_MS)

export interface LeaseParts {
  /** Without use for this long it is to be paused; 0: never, while this server runs. */
  idleMs: number
  /** A command or a connection is under way. */
  isBusy(): boolean
  extend(ms: number): Promise<void>
  log(line: string): void
}

export function keepLease({ idleMs, isBusy, extend, log }: LeaseParts): Lease {
  const lengthMs = leaseMs(idleMs)
  let lastUse = performance.now()
  let end = 0
  let holds = 0
  let timer: Timer | undefined

  const tend = async () => {
    const now = performance.now()
    const isUsed = holds > 0 || isBusy() || idleMs === 0
    const wanted = isUsed ? now + lengthMs : Math.min(lastUse + idleMs, now + lengthMs)
    if (end <= now || wanted <= now) return stop()
    if (wanted - end < lengthMs / 8) return
    try {
      await extend(wanted - now)
      end = wanted
    } catch (error) {
      log(`E2B did not extend its time: ${messageOf(error)}`)
    }
  }
  const stop = () => {
    if (timer) clearInterval(timer)
    timer = undefined
  }

  return {
    lengthMs,
    renewed() {
      end = performance.now() + lengthMs
      stop()
      timer = setInterval(() => void tend(), lengthMs / 4)
      timer.unref()
    },
    used() {
      lastUse = performance.now()
    },
    hold() {
      holds += 1
      return () => {
        holds -= 1
      }
    },
    isOver: () => performance.now() > end - MARGIN_MS,
    ended() {
      end = 0
      stop()
    },
    close: stop,
  }
}
