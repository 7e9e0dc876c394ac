import type { Database } from 'bun:sqlite'
import type { Agent, AgentInput, AgentOptions, AgentSandbox } from '../model/agent.ts'
import { isIsolation } from '../model/isolation.ts'
import type { SecretBinding } from '../model/secret.ts'
import type { Limits } from '../plugin-api/index.ts'
import { isObject } from '../read/json.ts'
import { newId, now } from './id.ts'
import { mustLast } from './lasting.ts'
import { inTransaction } from './open.ts'
import { type Columns, isStringRecord, isStrings, present, readJson } from './row.ts'
import { isSecretEnvs, seal, unseal, unsealed } from './seal.ts'

type Opened = 'sandbox' | 'options' | 'operatorLimits' | 'secrets'

type Row = Columns<Omit<Agent, Opened>> & {
  sandbox: string
  options: string
  secrets: string
  operatorLimits: string | null
}

const columns = `id, team_id as teamId, slug, name, engine, model, system_prompt as systemPrompt, sandbox, options, secrets,
  deployment_id as deploymentId, operator_limits as operatorLimits, created_at as createdAt, updated_at as updatedAt`

const isOptionalString = (value: unknown) => value === undefined || typeof value === 'string'

const isLimits = (value: unknown): value is Limits =>
  isObject(value) && Object.values(value).every(limit => typeof limit === 'number')

export const isAgentSandbox = (value: unknown): value is AgentSandbox =>
  isObject(value) &&
  isStringRecord(value.files) &&
  isStringRecord(value.envs) &&
  isStrings(value.setup) &&
  isOptionalString(value.cwd) &&
  isOptionalString(value.base) &&
  isOptionalString(value.image) &&
  isOptionalString(value.runtime) &&
  isOptionalString(value.template) &&
  isLimits(value.limits) &&
  (value.isolation === undefined || isIsolation(value.isolation)) &&
  (value.timeoutMs === undefined || typeof value.timeoutMs === 'number')

/** Its fields were checked when the agent was applied. */
export const isAgentOptions = (value: unknown): value is AgentOptions => isObject(value)

const isBindings = (value: unknown): value is SecretBinding[] =>
  Array.isArray(value) && value.every(each => isObject(each) && typeof each.secret === 'string')

const toAgent = (db: Database, { sandbox, options, operatorLimits, secrets, ...row }: Row): Agent => ({
  ...present<Omit<Agent, Opened>>(row),
  ...(secrets !== '[]' && { secrets: readJson(secrets, 'agents.secrets', isBindings) }),
  ...(operatorLimits !== null && {
    operatorLimits: readJson(operatorLimits, 'agents.operator_limits', isLimits),
  }),
  // Read when they are asked for: one that cannot be decrypted can still be listed and removed.
  get sandbox() {
    const text = unsealed('agent', () => unseal(db, sandbox, 'agents.sandbox', row.id))
    return readJson(text, 'agents.sandbox', isAgentSandbox)
  },
  get options() {
    const text = unsealed('agent', () => unseal(db, options, 'agents.options', row.id))
    return readJson(text, 'agents.options', isAgentOptions)
  },
})

/** What holds secrets is encrypted: variables, and the headers and variables of MCP servers. */
function written(db: Database, { id, sandbox, options }: Pick<Agent, 'id' | 'sandbox' | 'options'>) {
  const [files, rules] = [JSON.stringify(sandbox), JSON.stringify(options)]
  return {
    sandbox: isSecretEnvs(sandbox.envs) ? seal(db, files, 'agents.sandbox', id) : files,
    options: options.mcpServers || options.acp?.env ? seal(db, rules, 'agents.options', id) : rules,
  }
}

export function findAgent(db: Database, teamId: string, slug: string): Agent | undefined {
  const row = db
    .query<Row, { teamId: string; slug: string }>(
      `select ${columns} from agents where team_id = $teamId and slug = $slug`,
    )
    .get({ teamId, slug })
  return row ? toAgent(db, row) : undefined
}

/** A team's agents, by slug. */
export const listAgents = (db: Database, teamId: string): Agent[] =>
  db
    .query<Row, { teamId: string }>(`select ${columns} from agents where team_id = $teamId order by slug`)
    .all({ teamId })
    .map(row => toAgent(db, row))

/** Stores an agent; one of the same slug keeps its id, createdAt, versions and variables, and nothing else. */
export const saveAgent = (db: Database, teamId: string, input: AgentInput): Agent =>
  inTransaction(db, () => {
    mustLast(db)
    const at = now()
    const found = db
      .query<{ id: string; createdAt: string }, { teamId: string; slug: string }>(
        'select id, created_at as createdAt from agents where team_id = $teamId and slug = $slug',
      )
      .get({ teamId, slug: input.slug })
    const agent = { ...input, id: found?.id ?? newId('agt'), teamId, createdAt: found?.createdAt ?? at, updatedAt: at }
    db.query(
      `insert into agents
         (id, team_id, slug, name, engine, model, system_prompt, sandbox, options, secrets, deployment_id,
          operator_limits, created_at, updated_at)
       values ($id, $teamId, $slug, $name, $engine, $model, $systemPrompt, $sandbox, $options, $secrets, $deploymentId,
         $operatorLimits, $createdAt, $updatedAt)
       on conflict (id) do update set name = excluded.name, engine = excluded.engine, model = excluded.model,
         system_prompt = excluded.system_prompt, sandbox = excluded.sandbox, options = excluded.options, secrets = excluded.secrets,
         deployment_id = excluded.deployment_id, operator_limits = excluded.operator_limits,
         updated_at = excluded.updated_at`,
    ).run({
      model: null,
      systemPrompt: null,
      deploymentId: null,
      ...agent,
      secrets: JSON.stringify(agent.secrets ?? []),
      operatorLimits: agent.operatorLimits ? JSON.stringify(agent.operatorLimits) : null,
      ...written(db, agent),
    })
    return agent
  })

/** False when there is no such agent. Its versions, variables and logs go with it, its sandboxes stay. */
export function removeAgent(db: Database, teamId: string, slug: string): boolean {
  // An agent of this name that comes later is another one.
  db.query('delete from remembered_rules where team_id = $teamId and agent_slug = $slug').run({ teamId, slug })
  mustLast(db)
  return db.query('delete from agents where team_id = $teamId and slug = $slug').run({ teamId, slug }).changes > 0
}

/** The variables that every new sandbox of the agent gets, whichever version it is of. */
export function agentEnv(db: Database, id: string): Record<string, string> {
  const row = db.query<{ env: string }, { id: string }>('select env from agents where id = $id').get({ id })
  return readJson(unseal(db, row?.env ?? '{}', 'agents.env', id), 'agents.env', isStringRecord)
}

/** Sets one of them, or removes it when there is no value. Returns all variables after it. */
export const setAgentVariable = (
  db: Database,
  id: string,
  name: string,
  value: string | undefined,
): Record<string, string> =>
  inTransaction(db, () => {
    mustLast(db)
    const { [name]: _, ...others } = agentEnv(db, id)
    const env = value === undefined ? others : { ...others, [name]: value }
    db.query('update agents set env = $sealed, updated_at = $now where id = $id').run({
      id,
      sealed: isSecretEnvs(env) ? seal(db, JSON.stringify(env), 'agents.env', id) : '{}',
      now: now(),
    })
    return env
  })
