import type { Database } from 'bun:sqlite'
import type { FoundThread, ThreadFilter } from '../model/thread.ts'
import { readBeside } from './read-beside.ts'

/** The threads of a team, over all its sandboxes, newest first. */

const columns = `threads.id, threads.sandbox_id as sandboxId, threads.list_agent_slug as agentSlug, agent_name as agentName,
  threads.name, threads.status, threads.error, threads.external_user_id as externalUserId,
  threads.created_at as createdAt, threads.updated_at as updatedAt, completed_at as completedAt`

type Values = Record<string, string | number>

/** A page of the threads that pass the filter. */
export async function findThreads(db: Database, filter: ThreadFilter): Promise<FoundThread[]> {
  const { before, limit, words } = filter
  const { conditions, values } = toConditions(filter)
  if (words) {
    const match = `${toScope(filter)} AND text : (${await toQuery(db, words)})`
    const below = (before === undefined ? MAX_NUMBER : numberBelow(db, before)) * NUMBERS_PER_THREAD
    // The limit of -1 keeps the inner order: without one SQLite may drop it.
    const sql = `select ${columns} from (
        select distinct rowid >> 24 as number from message_search
        where message_search match $match and rowid < $below order by rowid desc limit -1
      ) as found
      cross join threads on threads.search_number = found.number
      cross join sandboxes on sandboxes.id = threads.sandbox_id
      where ${conditions.join(' and ')} limit $limit`
    return await readBeside<FoundThread>(db, sql, { ...values, match, below, limit })
  }
  const all = [...conditions, ...(before === undefined ? [] : ['threads.id < $before'])]
  const sql = `select ${columns} from threads cross join sandboxes on sandboxes.id = threads.sandbox_id
    where ${all.join(' and ')} order by threads.id desc limit $limit`
  const asked = { ...values, ...(before !== undefined && { before }), limit }
  // One condition beside the team has an index. With more of them all threads of one may have to be looked at.
  const isFast = [filter.agents, filter.sandboxId, filter.userId, filter.status].filter(Boolean).length <= 1
  if (isFast && (filter.agents?.length ?? 1) === 1) return db.query<FoundThread, Values>(sql).all(asked)
  return await readBeside<FoundThread>(db, sql, asked)
}

const NUMBERS_PER_THREAD = 2 ** 24
/** The products with the numbers of a thread's messages are exact. */
const MAX_NUMBER = 2 ** 28

function toConditions({ teamId, agents, sandboxId, userId, status, isOwn }: ThreadFilter) {
  const [agent, ...others] = agents ?? []
  const conditions: [string, Values][] = [['threads.list_team_id = $teamId', { teamId }]]
  if (agents && others.length === 0) conditions.push(['threads.list_agent_slug = $agent', { agent: agent ?? '' }])
  else if (agents)
    conditions.push([
      'threads.list_agent_slug in (select value from json_each($agents))',
      { agents: JSON.stringify(agents) },
    ])
  if (sandboxId !== undefined) conditions.push(['threads.sandbox_id = $sandboxId', { sandboxId }])
  if (userId !== undefined) conditions.push(['threads.external_user_id = $userId', { userId }])
  if (isOwn) conditions.push(['sandboxes.external_user_id = threads.external_user_id', {}])
  if (status !== undefined) conditions.push(['threads.status = $status', { status }])
  return {
    conditions: conditions.map(([condition]) => condition),
    values: Object.assign({}, ...conditions.map(([, values]) => values)) as Values,
  }
}

/** A thread that is gone still has a place among the others. */
const numberBelow = (db: Database, before: string): number =>
  db
    .query<{ number: number }, { before: string }>('select search_number as number from threads where id = $before')
    .get({
      before,
    })?.number ??
  (db
    .query<{ number: number }, { before: string }>(
      'select search_number as number from threads where id < $before order by id desc limit 1',
    )
    .get({ before })?.number ?? -1) + 1

/** As the index has them: see the migration. */
const toWord = (kind: string, id: string) => `"\u{E000}${kind}${Buffer.from(id).toString('hex')}"`

function toScope({ teamId, agents, sandboxId, userId }: ThreadFilter): string {
  const words = [
    toWord('t', teamId),
    ...(agents ? [`(${(agents.length > 0 ? agents : ['']).map(slug => toWord('a', slug)).join(' OR ')})`] : []),
    ...(sandboxId === undefined ? [] : [toWord('s', sandboxId)]),
    ...(userId === undefined ? [] : [toWord('u', userId)]),
  ]
  return `scope : (${words.join(' AND ')})`
}

/** With more words than that behind a prefix, FTS5 is no slower when it looks them up itself. */
const MAX_EXPANSIONS = 128

/** Each of these words, and any that begins with the last. */
async function toQuery(db: Database, words: readonly string[]): Promise<string> {
  const quoted = words.map(quote)
  const last = words.at(-1) ?? ''
  const first = fold(last)
  if (first === undefined) return [...quoted.slice(0, -1), `${quote(last)} *`].join(' AND ')
  // FTS5 collects all messages of a prefix before it gives the first one, and those of a word as they are wanted.
  const longer = await readBeside<{ word: string }>(
    db,
    `with recursive known (word) as (
       select (select term from message_words where term >= $first limit 1)
       union all
       select (select term from message_words where term >= known.word || char(1) limit 1) from known
       where substr(known.word, 1, length($first)) = $first limit $limit
     )
     select word from known where substr(word, 1, length($first)) = $first`,
    { first, limit: MAX_EXPANSIONS },
  )
  const isAll = longer.length > 0 && longer.length < MAX_EXPANSIONS - 1
  const end = isAll ? `(${longer.map(({ word }) => quote(word)).join(' OR ')})` : `${quote(last)} *`
  return [...quoted.slice(0, -1), end].join(' AND ')
}

const quote = (word: string) => `"${word.replaceAll('"', '""')}"`

/** The word as the index has it. Undefined for one with letters that FTS5 folds in a way of its own. */
function fold(word: string): string | undefined {
  const folded = Array.from(word.normalize('NFC'), toBase).join('').toLowerCase()
  return /^[a-z\dа-ик-я]+$/.test(folded) ? folded : undefined
}

/** A Latin letter without its accent. */
function toBase(character: string): string {
  const [base = '', accent, more] = character.normalize('NFD')
  return accent !== undefined && more === undefined && /^[a-z]$/i.test(base) ? base : character
}
