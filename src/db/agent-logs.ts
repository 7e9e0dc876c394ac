import type { Database } from 'bun:sqlite'
import type { AgentLog } from '../model/agent-log.ts'
import { now } from './id.ts'
import { type Columns, present } from './row.ts'

/** How many lines of an agent are kept; the oldest are deleted. */
const MAX_LINES = 1000

export function insertLog(db: Database, agentId: string, line: Omit<AgentLog, 'at'>): void {
  const { lastInsertRowid } = db
    .query(
      `insert into agent_logs (agent_id, at, source, level, sandbox_id, text)
       select id, $at, $source, $level, $sandboxId, $text from agents where id = $agentId`,
    )
    .run({ sandboxId: null, ...line, agentId, at: now() })
  db.query(
    `delete from agent_logs where agent_id = $agentId and id <= $lastId and id <=
       (select id from agent_logs where agent_id = $agentId order by id desc limit 1 offset $kept)`,
  ).run({ agentId, lastId: Number(lastInsertRowid), kept: MAX_LINES })
}

/** The newest lines, oldest first. */
export const listLogs = (db: Database, agentId: string, limit: number): AgentLog[] =>
  db
    .query<Columns<AgentLog>, { agentId: string; limit: number }>(
      `select at, source, level, sandbox_id as sandboxId, text from agent_logs
       where agent_id = $agentId order by id desc limit $limit`,
    )
    .all({ agentId, limit })
    .map(row => present<AgentLog>(row))
    .reverse()
