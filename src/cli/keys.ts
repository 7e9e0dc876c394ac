import { createKey } from '../core/access.ts'
import { DEFAULT_TEAM } from '../core/teams.ts'
import { listKeys, revokeKey } from '../db/keys.ts'
import { type Given, UsageError } from './command-line.ts'
import { openData } from './open-data.ts'

/** Works beside a running server, which sees the change at once. */
export async function keys(given: Given): Promise<void> {
  const { action, settings } = given
  const db = await openData(settings)
  if (action === 'create') {
    const lifetime = given.find('expires-in')
    const { key, row } = createKey(db, {
      team: given.find('team') ?? DEFAULT_TEAM,
      name: given.find('name') ?? 'key',
      ...(lifetime !== undefined && { expiresAt: new Date(Date.now() + daysMs(lifetime)).toISOString() }),
    })
    console.log(`${row.id}\n${key}\nIt is shown only now.`)
  } else if (action === 'list') {
    for (const { id, team, name, hint, createdAt, expiresAt, revokedAt } of listKeys(db)) {
      const state = revokedAt ? `revoked ${revokedAt}` : expiresAt ? `expires ${expiresAt}` : 'valid'
      console.log([id, team, name, `…${hint}`, createdAt, state].join('\t'))
    }
  } else {
    const [id = ''] = given.words
    if (!revokeKey(db, id)) throw new UsageError(`There is no valid key ${id}.`)
    console.log(`${id} is revoked.`)
  }
  db.close()
}

function daysMs(text: string): number {
  const [, days] = /^([1-9]\d{0,4})d$/.exec(text) ?? []
  if (!days) throw new UsageError('--expires-in wants days, like 30d')
  return Number(days) * 86_400_000
}
