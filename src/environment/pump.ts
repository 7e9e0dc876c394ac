import type { Descriptor } from '../descriptor.ts'
import { createGathering } from './gathering.ts'

export interface PumpOptions {
  /** Returns how many bytes wait in the pipe. */
  pendingBytes(descriptor: number): number
  /** True once nobody wants the output any more. */
  isGone(): boolean
  settleMs: number
  /** Lets more bytes wait in the pipe, so that much output is read in few large pieces. */
  widen?: (descriptor: number) => void
}

export interface Pump {
  /** Resolves when everything in the pipe was handed on. Call it when the command has ended. */
  drained(): Promise<void>
  /** Stops reading and closes the pipe. */
  stop(): void
}

/**
 * Hands on what comes out of a pipe or a terminal until every holder has closed it; `take` is waited for before more is
 * read. Once the command is drained, nobody waits for the rest. What is empty for `settleMs` counts as drained: what a
 * terminal shows is on its way through the kernel for a moment.
 */
export function pump(
  from: Descriptor,
  take: (bytes: Uint8Array) => void | Promise<void>,
  { pendingBytes, isGone, settleMs, widen }: PumpOptions,
): Pump {
  const reader = Bun.file(from.number).stream().getReader()
  let isReading = false
  let moves = 0
  let moved = Promise.withResolvers<void>()
  const move = (reading: boolean) => {
    isReading = reading
    moves++
    moved.resolve()
    moved = Promise.withResolvers<void>()
  }
  const gathering = widen && createGathering(() => widen(from.number))
  const forward = async () => {
    for (;;) {
      move(true)
      const { value, done } = await reader.read()
      move(false)
      if (done) return
      await take(value)
      await gathering?.(value.byteLength)
    }
  }
  void forward()
    // Reading a terminal that nobody holds any more fails.
    .catch(() => {})
    .finally(() => {
      from.close()
      move(false)
    })
  const isEmpty = () => isReading && pendingBytes(from.number) === 0

  return {
    // Then the loop above ends.
    stop: () => void reader.cancel().catch(() => {}),
    async drained() {
      // What is in the pipe now was printed by the command. A process that it left behind may hold the pipe for ever.
      await nextTurn()
      while (from.isOpen && !isGone()) {
        const before = moves
        if (!isEmpty()) await moved.promise
        else {
          // The stream may have read ahead while the last bytes were taken: it gives those bytes in this turn.
          await (settleMs > 0 ? Bun.sleep(settleMs) : nextTurn())
          if (moves === before && isEmpty()) return
        }
      }
    },
  }
}

/** Gives other events a turn. */
export const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))
