import { closeSync, openSync } from 'node:fs'

/** An open file of this process. Its `close` is idempotent, so each function that it passes through may close it. */
export interface Descriptor {
  readonly number: number
  readonly isOpen: boolean
  close(): void
}

export function ownDescriptor(number: number): Descriptor {
  let isOpen = true
  return {
    number,
    get isOpen() {
      return isOpen
    },
    close() {
      if (!isOpen) return
      isOpen = false
      closeSync(number)
    },
  }
}

/** More than a thread begins with. */
const THREAD_DESCRIPTORS = 16

/** Whether this process may have the descriptors of another thread. Bun ends the whole process when a new one cannot have them. */
export function canStartThread(): boolean {
  const made: number[] = []
  try {
    while (made.length < THREAD_DESCRIPTORS) made.push(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  } finally {
    for (const descriptor of made) closeSync(descriptor)
  }
}
