import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { findOwnId, keepOwnId } from '../../src/disk/own-id.ts'

/** A label on E2B's sandboxes that distinguishes those of this data directory from others of the same E2B project. */
export interface Label {
  /** False until the first sandbox is created on E2B. */
  exists(): boolean
  get(): Promise<string>
}

const FILE = join('e2b', 'label')

export function createLabel(dataDirectory: string): Label {
  let known: string | undefined
  const find = () => {
    known ??= findOwnId(dataDirectory, FILE)
    return known
  }
  return {
    exists: () => find() !== undefined,
    async get() {
      await mkdir(dirname(join(dataDirectory, FILE)), { recursive: true, mode: 0o700 })
      // Without an await from here on, so that all callers get the same label.
      const present = find()
      if (present !== undefined) return present
      known = crypto.randomUUID()
      keepOwnId(dataDirectory, FILE, known)
      return known
    },
  }
}
