import { createKey } from '../core/access/keys.ts'
import { DEFAULT_TEAM } from '../core/access/teams.ts'
import { listKeys, revokeKey } from '../db/keys.ts'
import type { ApiKey } from '../model/key.ts'
import { openData } from '../start/data.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { printList } from './list.ts'

/** Works beside a running server, which sees the change at once. */
export async function keys(given: Given): Promise<void> {
  const { action } = given
  const { config, tellIfUnused } = await readPlace(given)
  const { dataDirectory } = config
  const db = await openData(dataDirectory)
  if (action === 'create') {
    const lifetime = given.find('expires-in')
    const { key, row } = createKey(db, {
      team: given.find('team') ?? DEFAULT_TEAM,
      name: given.find('name') ?? 'key',
      ...(lifetime !== undefined && { expiresAt: new Date(Date.now() + daysMs(lifetime)).toISOString() }),
    })
    console.log(
      given.has('quiet') ? key : `${row.id}\n${key}\nIt is shown only now, and is for servers on ${dataDirectory}.`,
    )
  } else if (action === 'list') {
    printList(given, listKeys(db), {
      id: each => each.id,
      team: each => each.team,
      name: each => each.name,
      key: each => `…${each.hint}`,
      created: each => each.createdAt,
      state: describeState,
    })
  } else {
    const [id = ''] = given.words
    if (!revokeKey(db, id)) throw new UsageError(`There is no valid key ${id}.`)
    if (!given.has('quiet')) console.log(`${id} is revoked.`)
  }
  db.close()
  if (action !== 'list') tellIfUnused()
}

const describeState = ({ revokedAt, expiresAt }: ApiKey): string =>
  revokedAt ? `revoked ${revokedAt}` : expiresAt ? `expires ${expiresAt}` : 'valid'

function daysMs(text: string): number {
  const [, days] = /^([1-9]\d{0,4})d$/.exec(text) ?? []
  if (!days) throw new UsageError('--expires-in wants days, like 30d')
  return Number(days) * 86_400_000
}
