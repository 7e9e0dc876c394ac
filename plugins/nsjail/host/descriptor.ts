import { closeSync } from 'node:fs'

/** An open file of this process. Closing it again does nothing, so every owner on its way may. */
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
