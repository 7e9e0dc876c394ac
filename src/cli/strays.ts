import { DEFAULT_TEAM } from '../core/access/teams.ts'
import { adoptStray } from '../core/sandboxes/strays.ts'
import { listStrays } from '../db/environments.ts'
import { inTransaction } from '../db/open.ts'
import { openData } from '../start/data.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { keepCommand } from './keep-command.ts'
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
    const [environmentId = ''] = given.words
    const { id } = inTransaction(db, () => {
      const adopted = adoptStray(db, { id: environmentId, team: given.find('team') ?? DEFAULT_TEAM, slug })
      const { id: sandboxId, teamId } = adopted
      const target = { sandboxId, environmentId, agent: slug }
      keepCommand(db, 'strays adopt', { teamId, action: 'sandbox.created', target })
      return adopted
    })
    console.log(id)
    tellIfUnused()
  } finally {
    db.close()
  }
}
