import { createKey } from '../core/access/keys.ts'
import { createSignInLink } from '../core/access/sessions.ts'
import { DEFAULT_TEAM } from '../core/access/teams.ts'
import type { Runtime } from '../core/runtime.ts'
import { countKeys } from '../db/keys.ts'
import { inTransaction } from '../db/open.ts'
import { signInUrl } from './console-url.ts'
import { keepCommand } from './keep-command.ts'
import { keyHint } from './start-summary.ts'

/** Prints how to sign in. When there is no key yet, makes one, with a link to the console at this origin. */
export function showKey({ db, config }: Runtime, teamId: string, origin: string): void {
  const { apiKey, dataDirectory, publicUrl } = config
  if (apiKey || countKeys(db) > 0) {
    console.log(keyHint(dataDirectory))
    return
  }
  const { key, row } = inTransaction(db, () => {
    const made = createKey(db, { team: DEFAULT_TEAM, name: 'first' })
    keepCommand(db, 'serve', { teamId, action: 'key.created', target: { keyId: made.row.id } })
    return made
  })
  console.log(`API key of the team ${DEFAULT_TEAM}, shown only now: ${key}`)
  const link = createSignInLink(db, { teamId, keyId: row.id })
  console.log(`The console, signed in once within ten minutes: ${signInUrl(publicUrl ?? origin, link)}`)
}
