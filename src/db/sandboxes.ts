import type { Database } from 'bun:sqlite'
import type { NetworkRules, Sandbox, SandboxInput, SandboxNetwork, SandboxPage } from '../model/sandbox.ts'
import type { KeptBinding } from '../model/secret.ts'
import { isObject } from '../read/json.ts'
import { now } from './id.ts'
import { mustLast } from './lasting.ts'
import { type Columns, isStringRecord, isStrings, present, readJson } from './row.ts'
import { isSecretEnvs, seal, unseal, unsealed } from './seal.ts'

type Row = Columns<Omit<Sandbox, 'envs' | 'network'>> & { envs: string; network: string }

const columns = `id, team_id as teamId, agent_slug as agentSlug, agent_name as agentName,
  environment_id as environmentId, backend, isolation, status, error, envs, cwd, network, timeout_ms as timeoutMs,
  deployment_id as deploymentId, bundle, external_user_id as externalUserId, name, created_at as createdAt, updated_at as updatedAt, last_used_at as lastUsedAt`

const isRules = (value: unknown): value is NetworkRules | undefined =>
  value === undefined ||
  (isObject(value) &&
    (value.allowOut === undefined || isStrings(value.allowOut)) &&
    (value.denyOut === undefined || isStrings(value.denyOut)))

/** The fields were checked when the sandbox was made. */
const isBindings = (value: unknown): value is KeptBinding[] =>
  Array.isArray(value) && value.every(each => isObject(each) && typeof each.secret === 'string')

export const isNetwork = (value: unknown): value is SandboxNetwork =>
  isObject(value) &&
  isRules(value.agent) &&
  isRules(value.own) &&
  (value.secrets === undefined || isBindings(value.secrets))

const toSandbox = (db: Database, { envs, network, ...row }: Row): Sandbox => ({
  ...present<Omit<Sandbox, 'envs' | 'network'>>(row),
  network: readJson(network, 'sandboxes.network', isNetwork),
  // Read when they are asked for: one that cannot be decrypted can still be listed and deleted.
  get envs() {
    const text = unsealed('sandbox', () => unseal(db, envs, 'sandboxes.envs', row.id))
    return readJson(text, 'sandboxes.envs', isStringRecord)
  },
})

const sealEnvs = (db: Database, { id, envs }: Pick<Sandbox, 'id' | 'envs'>): string =>
  isSecretEnvs(envs) ? seal(db, JSON.stringify(envs), 'sandboxes.envs', id) : '{}'

/** Throws when the id or the environment is there already. */
export function insertSandbox(db: Database, input: SandboxInput): Sandbox {
  mustLast(db)
  const at = now()
  const sandbox = { ...input, createdAt: at, updatedAt: at, lastUsedAt: at }
  db.query(
    `insert into sandboxes (id, team_id, agent_slug, agent_name, environment_id, backend, isolation, status, error, envs, cwd,
       network, timeout_ms, deployment_id, bundle, external_user_id, name, created_at, updated_at, last_used_at)
     values ($id, $teamId, $agentSlug, $agentName, $environmentId, $backend, $isolation, $status, $error, $envs, $cwd,
       $network, $timeoutMs, $deploymentId, $bundle, $externalUserId, $name, $createdAt, $updatedAt, $lastUsedAt)`,
  ).run({
    isolation: null,
    error: null,
    timeoutMs: null,
    deploymentId: null,
    bundle: null,
    externalUserId: null,
    name: null,
    ...sandbox,
    envs: sealEnvs(db, sandbox),
    network: JSON.stringify(sandbox.network),
  })
  return sandbox
}

/** Assigns this version to those sandboxes of an agent that have none, and would follow the agent's changes. */
export function pinSandboxes(
  db: Database,
  pin: Required<Pick<Sandbox, 'teamId' | 'agentSlug' | 'deploymentId'>>,
): void {
  mustLast(db)
  db.query(
    `update sandboxes set deployment_id = $deploymentId
     where team_id = $teamId and agent_slug = $agentSlug and deployment_id is null`,
  ).run(pin)
}

/** A team's sandbox by its own id or its environment's. */
export function findSandbox(db: Database, teamId: string, id: string): Sandbox | undefined {
  const row = db
    .query<Row, { teamId: string; id: string }>(
      `select ${columns} from sandboxes where team_id = $teamId and (id = $id or environment_id = $id)`,
    )
    .get({ teamId, id })
  return row ? toSandbox(db, row) : undefined
}

/** Whether a sandbox of the team has this name. */
export const hasSandboxName = (db: Database, teamId: string, name: string): boolean =>
  db.query('select 1 from sandboxes where team_id = $teamId and name = $name').get({ teamId, name }) !== null

/** Finds a sandbox of any team. */
export function findSandboxById(db: Database, id: string): Sandbox | undefined {
  const row = db.query<Row, { id: string }>(`select ${columns} from sandboxes where id = $id`).get({ id })
  return row ? toSandbox(db, row) : undefined
}

/** The team and the agent of the newest sandbox. */
export const findNewestSandbox = (db: Database): { teamId: string; agentSlug: string } | undefined =>
  db
    .query<{ teamId: string; agentSlug: string }, []>(
      'select team_id as teamId, agent_slug as agentSlug from sandboxes order by id desc limit 1',
    )
    .get() ?? undefined

/** The sandbox of an environment; undefined when there is none. */
export const findSandboxOf = (db: Database, environmentId: string): { id: string; teamId: string } | undefined =>
  db
    .query<{ id: string; teamId: string }, { environmentId: string }>(
      'select id, team_id as teamId from sandboxes where environment_id = $environmentId',
    )
    .get({ environmentId }) ?? undefined

/** What the sandbox of an environment may reach; undefined when there is none. */
export function findNetwork(db: Database, environmentId: string): SandboxNetwork | undefined {
  const row = db
    .query<{ network: string }, { environmentId: string }>(
      'select network from sandboxes where environment_id = $environmentId',
    )
    .get({ environmentId })
  return row ? readJson(row.network, 'sandboxes.network', isNetwork) : undefined
}

export function saveNetwork(db: Database, id: string, network: SandboxNetwork): void {
  mustLast(db)
  db.query('update sandboxes set network = $network, updated_at = $now where id = $id').run({
    id,
    network: JSON.stringify(network),
    now: now(),
  })
}

/** Stores what a sandbox reaches and may use, and its variables. */
export function saveBindings(db: Database, { id, network, envs }: Pick<Sandbox, 'id' | 'network' | 'envs'>): void {
  saveNetwork(db, id, network)
  db.query('update sandboxes set envs = $envs where id = $id').run({ id, envs: sealEnvs(db, { id, envs }) })
}

type PageQuery = {
  teamId: string
  limit: number
  before: string | null
  agents: string | null
  userId: string | null
  hasFailed: number | null
  search: string | null
  name: string | null
  from: string | null
  to: string | null
}

/** A page of a team's sandboxes, newest first. */
export const listSandboxes = (db: Database, teamId: string, page: SandboxPage): Sandbox[] =>
  db
    .query<Row, PageQuery>(
      `select ${columns} from sandboxes
       where team_id = $teamId and ($before is null or id < $before)
         and ($agents is null or agent_slug in (select value from json_each($agents)))
         and ($userId is null or external_user_id = $userId)
         and ($hasFailed is null or $hasFailed =
           exists (select 1 from threads where sandbox_id = sandboxes.id and threads.status = 'error'))
         and ($search is null or instr(id, $search) or instr(environment_id, $search))
         and ($name is null or name = $name)
         and ($from is null or created_at >= $from) and ($to is null or created_at < $to)
       order by id desc limit $limit`,
    )
    .all({
      teamId,
      limit: page.limit,
      before: page.before ?? null,
      agents: page.agents ? JSON.stringify(page.agents) : null,
      userId: page.userId ?? null,
      hasFailed: page.hasFailed === undefined ? null : Number(page.hasFailed),
      search: page.search ?? null,
      name: page.name ?? null,
      from: page.from ?? null,
      to: page.to ?? null,
    })
    .map(row => toSandbox(db, row))

/** Counts this moment as a use: its time to live starts again. */
export function touchSandbox(db: Database, id: string): void {
  db.query('update sandboxes set last_used_at = $now where id = $id').run({ id, now: now() })
}

/** As `touchSandbox`, by its environment. */
export function touchEnvironment(db: Database, environmentId: string): void {
  db.query('update sandboxes set last_used_at = $now where environment_id = $environmentId').run({
    environmentId,
    now: now(),
  })
}

/** With its threads, messages and runs. False when there is no such sandbox. */
export function deleteSandbox(db: Database, id: string): boolean {
  mustLast(db)
  return db.query('delete from sandboxes where id = $id').run({ id }).changes > 0
}

/** The ids of every environment that a sandbox of this backend has. */
export const listEnvironments = (db: Database, backend: string): string[] =>
  db
    .query<{ id: string }, { backend: string }>('select environment_id as id from sandboxes where backend = $backend')
    .all({ backend })
    .map(row => row.id)

/** The sandboxes whose time to live since their last use is over at `at`. A run is a use up to its end. */
export const listExpiredSandboxes = (db: Database, at: Date): Sandbox[] =>
  db
    .query<Row, { at: number }>(
      `select ${columns} from sandboxes
       where timeout_ms is not null and unixepoch(last_used_at, 'subsec') * 1000 + timeout_ms <= $at
         and not exists (
           select 1 from runs where sandbox_id = sandboxes.id
             and (status = 'active' or unixepoch(ended_at, 'subsec') * 1000 + sandboxes.timeout_ms > $at))`,
    )
    .all({ at: at.getTime() })
    .map(row => toSandbox(db, row))
