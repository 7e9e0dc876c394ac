import { closeSync } from 'node:fs'

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
