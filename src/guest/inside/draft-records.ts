import { lstatSync, mkdirSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'

/** The directory of links to all drafts: a guest that was killed while it wrote one finds it there again. Only root may write there. */
export const RECORDS = '/var/lib/threadbox-drafts'
export const PREFIX = '.threadbox-draft-'
/** The end of a draft's name while its target does not exist yet. */
const NEW = '-new'

/** Makes a draft's name, which tells a watch of its directory what the draft becomes. */
export const draftName = (isNew: boolean) => crypto.randomUUID() + (isNew ? NEW : '')

export const isDraft = (name: string): boolean => name.startsWith(PREFIX)

export const isNewDraft = (name: string): boolean => isDraft(name) && name.endsWith(NEW)

/** Makes the place of the records, and removes the drafts that a guest was killed over. */
export function sweepDrafts(): void {
  try {
    mkdirSync(RECORDS, { recursive: true, mode: 0o700 })
    const { uid, mode } = lstatSync(RECORDS)
    if (uid !== process.getuid?.() || (mode & 0o022) !== 0) return
    for (const id of readdirSync(RECORDS)) {
      const record = join(RECORDS, id)
      const path = readlinkSync(record)
      if (basename(path) === PREFIX + id) rmSync(path, { force: true })
      rmSync(record)
    }
  } catch {
    // Without a writable directory there are no drafts.
  }
}
