import { closeSync } from 'node:fs'

/** An open file of this process. Its `close` is idempotent, so each function that it passes through may close it. */
export interface Descriptor {
  readonly number: number
  close(): void
}

export function ownDescriptor(number: number): Descriptor {
  let isOpen = true
  return {
    number,
    close() {
      if (!isOpen) return
      isOpen = false
      closeSync(number)
    },
  }
}
