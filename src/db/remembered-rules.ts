import type { Database } from 'bun:sqlite'
import type { RememberedRule } from '../model/remembered-rule.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'

const columns = 'id, team_id as teamId, agent_slug as agentSlug, thread_id as threadId, rule, created_at as createdAt'

/** Stores a rule, once. */
export function rememberRule(db: Database, rule: Omit<RememberedRule, 'id' | 'createdAt'>): void {
  mustLast(db)
  db.query(
    `insert into remembered_rules (id, team_id, agent_slug, thread_id, rule, created_at)
     values ($id, $teamId, $agentSlug, $threadId, $rule, $now) on conflict do nothing`,
  ).run({ ...rule, id: newId('rule'), now: now() })
}

/** All rules of an agent, those of its threads too, oldest first. */
export const listRules = (db: Database, teamId: string, agentSlug: string): RememberedRule[] =>
  db
    .query<RememberedRule, { teamId: string; agentSlug: string }>(
      `select ${columns} from remembered_rules where team_id = $teamId and agent_slug = $agentSlug order by id`,
    )
    .all({ teamId, agentSlug })

/** The rules that hold in a thread. */
export const rulesFor = (
  db: Database,
  place: Pick<RememberedRule, 'teamId' | 'agentSlug'> & { threadId: string },
): string[] =>
  db
    .query<{ rule: string }, typeof place>(
      `select rule from remembered_rules where team_id = $teamId and agent_slug = $agentSlug
         and (thread_id is null or thread_id = $threadId) order by id`,
    )
    .all(place)
    .map(({ rule }) => rule)

/** False when the agent has no such rule. */
export function forgetRule(db: Database, teamId: string, agentSlug: string, id: string): boolean {
  mustLast(db)
  return (
    db
      .query('delete from remembered_rules where team_id = $teamId and agent_slug = $agentSlug and id = $id')
      .run({ teamId, agentSlug, id }).changes > 0
  )
}
