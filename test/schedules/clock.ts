import type { Clock } from '../../src/core/schedules/scheduler.ts'

/** A clock that stands still until a test sets it. */
export class TestClock implements Clock {
  #at: number
  readonly #timers = new Set<{ at: number; call: () => void }>()
  /** What the last timer waits for. */
  waitMs = Number.NaN

  constructor(at: string) {
    this.#at = Date.parse(at)
  }

  now(): Date {
    return new Date(this.#at)
  }

  after(ms: number, call: () => void): Disposable {
    this.waitMs = ms
    const timer = { at: this.#at + ms, call }
    this.#timers.add(timer)
    // The clock may have been set since its owner has read it.
    if (ms <= 0) queueMicrotask(() => this.#wake(each => each === timer))
    return { [Symbol.dispose]: () => void this.#timers.delete(timer) }
  }

  /** Sets the clock to another moment, as an operator or a long sleep of the machine does. */
  set(at: string): void {
    this.#at = Date.parse(at)
    this.#wake(() => true)
  }

  /** Lets time pass as it does: each timer is called when its moment comes. */
  advanceTo(at: string): void {
    this.#at = Date.parse(at)
    this.#wake(timer => timer.at <= this.#at)
  }

  #wake(isDue: (timer: { at: number; call: () => void }) => boolean): void {
    for (const timer of [...this.#timers].filter(isDue)) {
      this.#timers.delete(timer)
      timer.call()
    }
  }
}
