import type { Database } from 'bun:sqlite'
import { seal, unseal } from './seal.ts'
import { findSetting, saveSetting } from './settings.ts'

const NAME = 'authority'

/**
 * Where this data directory keeps the authority for hosts with secrets: encrypted, and in each backup. One that cannot be decrypted
 * counts as none: another is made then.
 */
export const createAuthorityStore = (db: Database) => ({
  read(): string | undefined {
    const stored = findSetting(db, NAME)
    try {
      return stored === undefined ? undefined : unseal(db, stored, 'settings.value', NAME)
    } catch {
      return undefined
    }
  },
  write: (text: string): void => saveSetting(db, NAME, seal(db, text, 'settings.value', NAME)),
})
