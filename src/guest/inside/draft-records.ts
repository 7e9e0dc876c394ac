import { lstatSync, mkdirSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'

/** A link to each draft: who was killed while it wrote one finds it again. Only root may write there. */
export const RECORDS = '/var/lib/threadbox-drafts'
export const PREFIX = '.threadbox-draft-'
/** Ends the name of a draft whose target is not there yet. */
const NEW = '-new'

/** The name of a draft: who watches its directory knows by it what the draft becomes. */
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
