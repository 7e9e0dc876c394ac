import { messageOf } from '../../src/errors.ts'

/** Extends a sandbox's time at E2B while it is used. E2B pauses it when the time is up, even if no server runs. */
export interface KeepAlive {
  readonly lengthMs: number
  /** Reports that E2B has just granted `lengthMs`. */
  renewed(): void
  used(): void
  /** The sandbox counts as used until the returned function is called. */
  hold(): () => void
  /** Whether the time is up, so that the sandbox may be paused. */
  isOver(): boolean
  /** Reports that the sandbox was paused. */
  ended(): void
  close(): void
}

/** The limit of E2B's smaller plan. */
const LONGEST_MS = 3_600_000
const SHORTEST_MS = 1000
/** For the time that an answer takes. */
const MARGIN_MS = 250

/** The time to ask for at once. */
export const keepAliveMs = (idleMs: number): number => Math.min(Math.max(idleMs || LONGEST_MS, SHORTEST_MS), LONGEST_MS)

export interface KeepAliveOptions {
  /** An unused sandbox is paused after this time. 0: not while this server runs. */
  idleMs: number
  /** Whether a command or a connection is open. */
  isBusy(): boolean
  extend(ms: number): Promise<void>
  log(line: string): void
}

export function createKeepAlive({ idleMs, isBusy, extend, log }: KeepAliveOptions): KeepAlive {
  const lengthMs = keepAliveMs(idleMs)
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
