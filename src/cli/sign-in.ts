import { createSignInLink } from '../core/access/sessions.ts'
import { DEFAULT_TEAM, ensureTeamWithEcho } from '../core/access/teams.ts'
import { inTransaction } from '../db/open.ts'
import { openData } from '../start/data.ts'
import type { Given } from './command-line.ts'
import { signInUrl } from './console-url.ts'
import { readPlace } from './data-place.ts'
import { keepCommand } from './keep-command.ts'

/** Prints a link that signs a browser in. Works beside a running server. */
export async function signIn(given: Given): Promise<void> {
  const { config, tellIfUnused } = await readPlace(given)
  const db = await openData(config.dataDirectory)
  const { id: teamId } = ensureTeamWithEcho(db, given.find('team') ?? DEFAULT_TEAM)
  const link = inTransaction(db, () => {
    keepCommand(db, 'sign-in', { teamId, action: 'sign-in-link.created', target: {} })
    return createSignInLink(db, { teamId })
  })
  console.log(signInUrl(config.publicUrl ?? `http://${hostOf(config.host)}:${config.port}`, link))
  db.close()
  tellIfUnused()
}

/** A server that listens on all addresses is reached from this machine by this name. */
const hostOf = (host: string): string => (host === '0.0.0.0' || host === '::' ? 'localhost' : host)
