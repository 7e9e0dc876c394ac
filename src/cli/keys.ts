import { createKey } from '../core/access.ts'
import { DEFAULT_TEAM } from '../core/teams.ts'
import { listKeys, revokeKey } from '../db/keys.ts'
import { splitWords, takeFlags, UsageError } from './flags.ts'
import { openData } from './open-data.ts'

const usage = 'threadbox keys create [--name NAME] [--team TEAM] [--expires-in 30d] | list | revoke ID'

/** Works beside a running server, which sees the change at once. */
export async function keys(args: readonly string[]): Promise<void> {
  const { flags, rest } = takeFlags(args, ['name', 'team', 'expires-in'])
  const { words, flags: settings } = splitWords(rest)
  const [action, id] = words
  const db = await openData(settings)
  if (action === 'create') {
    const lifetime = flags['expires-in']
    const { key, row } = createKey(db, {
      team: flags.team ?? DEFAULT_TEAM,
      name: flags.name ?? 'key',
      ...(lifetime !== undefined && { expiresAt: new Date(Date.now() + daysMs(lifetime)).toISOString() }),
    })
    console.log(`${row.id}\n${key}\nIt is shown only now.`)
  } else if (action === 'list') {
    for (const { id, team, name, hint, createdAt, expiresAt, revokedAt } of listKeys(db)) {
      const state = revokedAt ? `revoked ${revokedAt}` : expiresAt ? `expires ${expiresAt}` : 'valid'
      console.log([id, team, name, `…${hint}`, createdAt, state].join('\t'))
    }
  } else if (action === 'revoke' && id) {
    if (!revokeKey(db, id)) throw new UsageError(`There is no valid key ${id}.`)
    console.log(`${id} is revoked.`)
  } else {
    throw new UsageError(`usage: ${usage}`)
  }
  db.close()
}

function daysMs(text: string): number {
  const [, days] = /^([1-9]\d{0,4})d$/.exec(text) ?? []
  if (!days) throw new UsageError('--expires-in wants days, like 30d')
  return Number(days) * 86_400_000
}
