import { writeSync } from 'node:fs'
import { createLock } from '../../async/lock.ts'
import type { Descriptor } from '../../descriptor.ts'
import { codeOf } from '../../read/error-code.ts'
import type { Libc } from './libc.ts'

/** Waits this long for a full pipe to be read before it tries again. */
const FULL_PIPE_POLL_MS = 1

/**
 * Hands on what comes out of a pipe or a terminal until every holder has closed it; `take` is waited for before more is
 * read. Once the command is drained, nobody waits for the rest. What is empty for `settleMs` counts as drained: what a
 * terminal shows is on its way through the kernel for a moment.
 */
export function pump(
  from: Descriptor,
  libc: Libc,
  take: (bytes: Uint8Array) => void | Promise<void>,
  { isGone, settleMs }: { isGone: () => boolean; settleMs: number },
): { drained(): Promise<void> } {
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
  const forward = async () => {
    for (;;) {
      move(true)
      const { value, done } = await reader.read()
      move(false)
      if (done) return
      await take(value)
    }
  }
  void forward()
    // A terminal that nobody holds any more gives an error.
    .catch(() => {})
    .finally(() => {
      from.close()
      move(false)
    })
  const isEmpty = () => isReading && libc.pendingBytes(from.number) === 0

  return {
    async drained() {
      // What is in the pipe now was printed by the command. A process that it left behind may hold the pipe for ever.
      await nextTurn()
      while (from.isOpen && !isGone()) {
        const before = moves
        if (!isEmpty()) await moved.promise
        else {
          // The stream may have read ahead while the last bytes were taken: it gives that in this turn.
          await (settleMs > 0 ? Bun.sleep(settleMs) : nextTurn())
          if (moves === before && isEmpty()) return
        }
      }
    },
  }
}

/** Lets other events have their turn. */
export const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Writes to a pipe or a terminal in the order of the calls, as fast as its reader reads. */
export interface Input {
  /** Resolves early when `isGone`. Rejects when nobody reads any more. */
  write(bytes: Uint8Array, isGone: () => boolean): Promise<void>
  /** Closes it after what is being written. */
  end(): void
}

export function createInput(to: Descriptor): Input {
  const lock = createLock()
  const writeAll = async (bytes: Uint8Array, isGone: () => boolean) => {
    for (let offset = 0; offset < bytes.byteLength && !isGone(); ) {
      if (!to.isOpen) throw new Error('nobody reads')
      const written = writeSome(to.number, bytes.subarray(offset))
      offset += written
      if (written === 0) await Bun.sleep(FULL_PIPE_POLL_MS)
    }
  }
  return {
    write: (bytes, isGone) => lock(() => writeAll(bytes, isGone)),
    end: () => void lock(() => to.close()),
  }
}

function writeSome(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return 0
    throw error
  }
}
