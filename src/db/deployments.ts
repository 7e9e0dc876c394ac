import type { Database } from 'bun:sqlite'
import type { AgentDefinition } from '../model/agent.ts'
import type { DeployedTool, Deployment, DeploymentInput, DeploymentSummary } from '../model/deployment.ts'
import { isObject } from '../read/json.ts'
import { isAgentOptions, isAgentSandbox } from './agents.ts'
import { newId, now } from './id.ts'
import { inTransaction } from './open.ts'
import { type Columns, present, readJson } from './row.ts'
import { seal, unseal, unsealed } from './seal.ts'

type Row = Columns<Omit<DeploymentSummary, 'tools'>> & { tools: string }

const columns = `id, agent_id as agentId, version, made_by as madeBy, model, tools, bundle, template,
  created_at as createdAt`

/** Its fields were checked when it was deployed. */
const isDefinition = (value: unknown): value is AgentDefinition =>
  isObject(value) && isAgentSandbox(value.sandbox) && isAgentOptions(value.options)

const isTools = (value: unknown): value is DeployedTool[] =>
  Array.isArray(value) && value.every(tool => isObject(tool) && typeof tool.name === 'string')

const toSummary = ({ tools, ...row }: Row): DeploymentSummary => ({
  ...present<Omit<DeploymentSummary, 'tools'>>(row),
  tools: readJson(tools, 'deployments.tools', isTools),
})

/** How many versions of an agent are kept; the oldest are deleted. */
const MAX_VERSIONS = 100

/** The agent's next version. */
export const insertDeployment = (db: Database, input: DeploymentInput): Deployment =>
  inTransaction(db, () => {
    const { version } = db
      .query<{ version: number }, { agentId: string }>(
        'select coalesce(max(version), 0) + 1 as version from deployments where agent_id = $agentId',
      )
      .get({ agentId: input.agentId }) ?? { version: 1 }
    const { model } = input.definition
    const made = { id: newId('dep'), version, createdAt: input.createdAt ?? now() }
    const deployment: Deployment = { ...input, ...made, ...(model !== undefined && { model }) }
    db.query(
      `insert into deployments (id, agent_id, version, made_by, definition, model, tools, bundle, template, created_at)
       values ($id, $agentId, $version, $madeBy, $definition, $model, $tools, $bundle, $template, $createdAt)`,
    ).run({
      model: null,
      bundle: null,
      template: null,
      ...deployment,
      definition: seal(db, JSON.stringify(deployment.definition), 'deployments.definition', deployment.id),
      tools: JSON.stringify(deployment.tools),
    })
    db.query('delete from deployments where agent_id = $agentId and version <= $oldest').run({
      agentId: input.agentId,
      oldest: version - MAX_VERSIONS,
    })
    return deployment
  })

/** A version without its definition, which is encrypted. */
export function findVersion(db: Database, id: string): DeploymentSummary | undefined {
  const row = db.query<Row, { id: string }>(`select ${columns} from deployments where id = $id`).get({ id })
  return row ? toSummary(row) : undefined
}

/** Throws sandbox_unavailable when its definition cannot be decrypted. */
export function findDeployment(db: Database, id: string): Deployment | undefined {
  const row = db
    .query<Row & { definition: string }, { id: string }>(
      `select ${columns}, definition from deployments where id = $id`,
    )
    .get({ id })
  if (!row) return undefined
  const { definition, ...summary } = row
  const text = unsealed('agent', () => unseal(db, definition, 'deployments.definition', id))
  return { ...toSummary(summary), definition: readJson(text, 'deployments.definition', isDefinition) }
}

/** An agent's versions, newest first. */
export const listDeployments = (db: Database, agentId: string): DeploymentSummary[] =>
  db
    .query<Row, { agentId: string }>(
      `select ${columns} from deployments where agent_id = $agentId order by version desc`,
    )
    .all({ agentId })
    .map(toSummary)

/** The names of all files that a version, a sandbox or a snapshot needs. */
export const listBundles = (db: Database): string[] =>
  db
    .query<{ name: string }, []>(
      `select bundle as name from deployments where bundle is not null
       union select template from deployments where template is not null
       union select bundle from sandboxes where bundle is not null
       union select bundle from snapshots where bundle is not null`,
    )
    .all()
    .map(({ name }) => name)
