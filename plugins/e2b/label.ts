import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { findOwnId, keepOwnId } from '../../src/disk/own-id.ts'

/** What tells the sandboxes of this data directory from all others of the same E2B project. */
export interface Label {
  /** False as long as no sandbox was made on E2B. */
  exists(): boolean
  get(): Promise<string>
}

const FILE = join('e2b', 'label')

export function labelOf(dataDirectory: string): Label {
  let known: string | undefined
  const find = () => {
    known ??= findOwnId(dataDirectory, FILE)
    return known
  }
  return {
    exists: () => find() !== undefined,
    async get() {
      await mkdir(dirname(join(dataDirectory, FILE)), { recursive: true, mode: 0o700 })
      // From here on nothing is awaited: all get the same.
      const present = find()
      if (present !== undefined) return present
      known = crypto.randomUUID()
      keepOwnId(dataDirectory, FILE, known)
      return known
    },
  }
}
