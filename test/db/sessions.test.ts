import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lasting } from '../../src/db/lasting.ts'
import { openDatabase } from '../../src/db/open.ts'
import { takeSignInLink } from '../../src/db/sessions.ts'

test('a link that is not known waits for no disk: anyone may try one', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-sessions-'))
  const db = openDatabase(join(directory, 'threadbox.db'))
  try {
    await lasting(db)
    expect(takeSignInLink(db, 'unknown')).toBeUndefined()
    let isOnDisk = false
    void lasting(db).then(() => {
      isOnDisk = true
    })
    // The disk takes longer than a turn of the microtasks.
    await Promise.resolve()
    expect(isOnDisk).toBe(true)
  } finally {
    db.close()
    rmSync(directory, { recursive: true })
  }
})
