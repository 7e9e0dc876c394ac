import type { Database } from 'bun:sqlite'
import { seal, unseal } from './seal.ts'
import { findSetting, saveSetting } from './settings.ts'

const NAME = 'authority'

/**
 * Stores the authority for hosts with secrets in this data directory, encrypted and in each backup. An authority that cannot be
 * decrypted is ignored, and another one is made.
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
