import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { erase } from './erase.ts'

/** Removes the guests of earlier builds. No jail may run: it shows the one that it was started with. */
export async function eraseOldGuests(current: string): Promise<void> {
  const parent = dirname(current)
  for (const name of await readdir(parent)) {
    if (name !== basename(current)) await erase(join(parent, name))
  }
}
