import { DEFAULT_TEAM } from '../core/access/teams.ts'
import { adoptStray } from '../core/sandboxes/strays.ts'
import { listStrays } from '../db/environments.ts'
import { openData } from '../start/data.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { printList } from './list.ts'

/** Works beside a running server, which sees the change at once. */
export async function strays(given: Given): Promise<void> {
  const { config, tellIfUnused } = await readPlace(given)
  const db = await openData(config.dataDirectory)
  try {
    if (given.action === 'list') {
      printList(given, listStrays(db), {
        environment: each => each.environmentId,
        backend: each => each.backend,
        found: each => each.foundAt,
      })
      return
    }
    const slug = given.find('agent')
    if (slug === undefined) throw new UsageError('--agent: say which agent the sandbox is to be of')
    const { id } = adoptStray(db, { id: given.words[0] ?? '', team: given.find('team') ?? DEFAULT_TEAM, slug })
    console.log(id)
    tellIfUnused()
  } finally {
    db.close()
  }
}
