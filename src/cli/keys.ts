import { createKey } from '../core/access/keys.ts'
import { DEFAULT_TEAM } from '../core/access/teams.ts'
import { keySubjects } from '../core/limits/parse.ts'
import { findKey, listKeys, revokeKey, saveKeyLimits } from '../db/keys.ts'
import { inTransaction } from '../db/open.ts'
import type { ApiKey } from '../model/key.ts'
import { isScope, type Scope, scopes } from '../model/scope.ts'
import { openData } from '../start/data.ts'
import { changeLimits, describeLimits } from './change-limits.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { keepCommand } from './keep-command.ts'
import { printList } from './list.ts'

/** Works beside a running server, which sees the change at once. */
export async function keys(given: Given): Promise<void> {
  const { action } = given
  const { config, tellIfUnused } = await readPlace(given)
  const { dataDirectory } = config
  const db = await openData(dataDirectory)
  if (action === 'create') {
    const lifetime = given.find('expires-in')
    const wanted = given.find('scopes')
    const wish = {
      team: given.find('team') ?? DEFAULT_TEAM,
      name: given.find('name') ?? 'key',
      isForE2b: given.has('e2b'),
      ...(lifetime !== undefined && { expiresAt: new Date(Date.now() + daysMs(lifetime)).toISOString() }),
      ...(wanted !== undefined && { scopes: readScopes(wanted) }),
      ...(given.all('limit').length > 0 && { limits: changeLimits({}, given.all('limit'), keySubjects) }),
    }
    const { key, row } = inTransaction(db, () => {
      const made = createKey(db, wish)
      const { id: keyId, teamId, expiresAt, scopes } = made.row
      keepCommand(db, 'keys create', {
        teamId,
        action: 'key.created',
        target: { keyId },
        detail: { expiresAt, scopes },
      })
      return made
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
      scopes: each => each.scopes?.join(', ') ?? 'all',
      limits: each => describeLimits(each.limits),
    })
  } else if (action === 'limit') {
    const [id = '', ...changes] = given.words
    const found = findKey(db, id)
    if (!found) throw new UsageError(`There is no key ${id}.`)
    const limits = changeLimits(found.limits ?? {}, changes, keySubjects)
    inTransaction(db, () => {
      saveKeyLimits(db, id, limits)
      const { teamId } = found
      keepCommand(db, 'keys limit', { teamId, action: 'key.limited', target: { keyId: id }, detail: { ...limits } })
    })
    console.log(describeLimits(limits))
  } else {
    const [id = ''] = given.words
    inTransaction(db, () => {
      if (!revokeKey(db, id)) throw new UsageError(`There is no valid key ${id}.`)
      const teamId = findKey(db, id)?.teamId
      const whose = teamId === undefined ? {} : { teamId }
      keepCommand(db, 'keys revoke', { ...whose, action: 'key.revoked', target: { keyId: id } })
    })
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

function readScopes(text: string): Scope[] {
  const words = text.split(',').map(word => word.trim())
  const unknown = words.find(word => !isScope(word))
  if (unknown !== undefined) throw new UsageError(`--scopes wants ${scopes.join(', ')} by comma, not ${unknown}`)
  return [...new Set(words.filter(isScope))]
}
