import type { Database } from 'bun:sqlite'
import { insertLog } from '../../db/agent-logs.ts'
import { isBusy, writeWhenFree } from '../../db/busy.ts'
import type { AgentLog } from '../../model/agent-log.ts'
import { withoutValues } from './without-values.ts'

const MAX_TEXT_CHARS = 4000

export type LogLine = Omit<AgentLog, 'at'>

/** Adds a line to an agent's log. The value of a variable is replaced by the variable's name. */
export function logAgent(
  db: Database,
  agentId: string,
  line: LogLine,
  variables: Readonly<Record<string, string>> = {},
): void {
  const text = withoutValues(line.text, variables).trim()
  if (!text) return
  const cut = text.length > MAX_TEXT_CHARS ? `…${text.slice(-MAX_TEXT_CHARS)}` : text
  const write = () => insertLog(db, agentId, { ...line, text: cut })
  try {
    write()
  } catch (error) {
    if (!isBusy(error)) throw error
    // What the line is about does not wait for it.
    void writeWhenFree(db, write).catch(() => {})
  }
}
