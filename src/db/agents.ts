import type { Database } from 'bun:sqlite'
import { isObject } from '../json.ts'
import type { Limits, TurnOptions } from '../plugin.ts'
import { newId, now } from './id.ts'
import { inTransaction } from './open.ts'
import { type Columns, isStringRecord, isStrings, present, readJson } from './row.ts'

/** What each sandbox of an agent starts with. */
export interface AgentSandbox {
  files: Record<string, string>
  envs: Record<string, string>
  setup: string[]
  cwd?: string
  /** For nsjail. */
  base?: string
  /** For docker. */
  image?: string
  /** For e2b. */
  template?: string
  limits: Limits
}

/** What an agent may do, and spend, in a turn. A chat's own options stay within these. */
export interface AgentOptions extends TurnOptions {
  maxBudgetUsd?: number
  maxSandboxBudgetUsd?: number
  /** In all, over every sandbox. */
  maxAgentBudgetUsd?: number
  networkAllowOut?: string[]
  networkDenyOut?: string[]
}

export interface Agent {
  id: string
  teamId: string
  slug: string
  name: string
  engine: string
  model?: string
  systemPrompt?: string
  sandbox: AgentSandbox
  options: AgentOptions
  createdAt: string
  updatedAt: string
}

export type AgentInput = Omit<Agent, 'id' | 'teamId' | 'createdAt' | 'updatedAt'>

type Row = Columns<Omit<Agent, 'sandbox' | 'options'>> & { sandbox: string; options: string }

const columns = `id, team_id as teamId, slug, name, engine, model, system_prompt as systemPrompt, sandbox, options,
  created_at as createdAt, updated_at as updatedAt`

const isOptionalString = (value: unknown) => value === undefined || typeof value === 'string'

const isAgentSandbox = (value: unknown): value is AgentSandbox =>
  isObject(value) &&
  isStringRecord(value.files) &&
  isStringRecord(value.envs) &&
  isStrings(value.setup) &&
  isOptionalString(value.cwd) &&
  isOptionalString(value.base) &&
  isOptionalString(value.image) &&
  isOptionalString(value.template) &&
  isObject(value.limits) &&
  Object.values(value.limits).every(limit => typeof limit === 'number')

/** Its fields were checked when the agent was applied. */
const isAgentOptions = (value: unknown): value is AgentOptions => isObject(value)

const toAgent = ({ sandbox, options, ...row }: Row): Agent => ({
  ...present<Omit<Agent, 'sandbox' | 'options'>>(row),
  sandbox: readJson(sandbox, 'agents.sandbox', isAgentSandbox),
  options: readJson(options, 'agents.options', isAgentOptions),
})

export function findAgent(db: Database, teamId: string, slug: string): Agent | undefined {
  const row = db
    .query<Row, { teamId: string; slug: string }>(
      `select ${columns} from agents where team_id = $teamId and slug = $slug`,
    )
    .get({ teamId, slug })
  return row ? toAgent(row) : undefined
}

/** A team's agents, by slug. */
export const listAgents = (db: Database, teamId: string): Agent[] =>
  db
    .query<Row, { teamId: string }>(`select ${columns} from agents where team_id = $teamId order by slug`)
    .all({ teamId })
    .map(toAgent)

/** Stores an agent; one of the same slug keeps its id and createdAt, and nothing else. */
export const saveAgent = (db: Database, teamId: string, input: AgentInput): Agent =>
  inTransaction(db, () => {
    const at = now()
    const found = findAgent(db, teamId, input.slug)
    const agent = { ...input, id: found?.id ?? newId('agt'), teamId, createdAt: found?.createdAt ?? at, updatedAt: at }
    db.query(
      `insert or replace into agents
         (id, team_id, slug, name, engine, model, system_prompt, sandbox, options, created_at, updated_at)
       values ($id, $teamId, $slug, $name, $engine, $model, $systemPrompt, $sandbox, $options, $createdAt, $updatedAt)`,
    ).run({
      model: null,
      systemPrompt: null,
      ...agent,
      sandbox: JSON.stringify(agent.sandbox),
      options: JSON.stringify(agent.options),
    })
    return agent
  })

/** False when there is no such agent. Its sandboxes stay. */
export const removeAgent = (db: Database, teamId: string, slug: string): boolean =>
  db.query('delete from agents where team_id = $teamId and slug = $slug').run({ teamId, slug }).changes > 0
