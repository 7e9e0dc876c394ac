import type { Database } from 'bun:sqlite'
import type { E2bNetwork, E2bPage, E2bSandbox } from '../model/e2b-sandbox.ts'
import { isObject } from '../read/json.ts'
import { mustLast } from './lasting.ts'
import { type Columns, isStringRecord, isStrings, present, readJson } from './row.ts'

type Row = Omit<Columns<E2bSandbox>, 'metadata' | 'network' | 'resumes' | 'isPrivate'> & {
  metadata: string
  network: string | null
  resumes: number
  isPrivate: number
}

const columns = `e.sandbox_id as sandboxId, e.template, e.metadata, e.timeout_ms as timeoutMs, e.ends_at as endsAt,
  e.on_end as onEnd, e.resumes, e.is_private as isPrivate, e.masked_host as maskedHost, e.network, e.paused_at as pausedAt`

const isNetwork = (value: unknown): value is E2bNetwork =>
  isObject(value) && isStrings(value.allowOut) && isStrings(value.denyOut)

const fromRow = ({ metadata, network, resumes, isPrivate, ...row }: Row): E2bSandbox => ({
  ...present<Omit<E2bSandbox, 'metadata' | 'network' | 'resumes' | 'isPrivate'>>(row),
  metadata: readJson(metadata, 'e2b_sandboxes.metadata', isStringRecord),
  ...(network !== null && { network: readJson(network, 'e2b_sandboxes.network', isNetwork) }),
  resumes: resumes !== 0,
  isPrivate: isPrivate !== 0,
})

/** Stores what E2B's client asked for with a sandbox, or a change of it. */
export function saveE2bSandbox(db: Database, each: E2bSandbox): void {
  mustLast(db)
  db.query(
    `insert into e2b_sandboxes (sandbox_id, template, metadata, timeout_ms, ends_at, on_end, resumes, is_private,
       masked_host, network, paused_at)
     values ($sandboxId, $template, $metadata, $timeoutMs, $endsAt, $onEnd, $resumes, $isPrivate, $maskedHost,
       $network, $pausedAt)
     on conflict (sandbox_id) do update set timeout_ms = excluded.timeout_ms, ends_at = excluded.ends_at,
       on_end = excluded.on_end, resumes = excluded.resumes, network = excluded.network, paused_at = excluded.paused_at`,
  ).run({
    maskedHost: null,
    pausedAt: null,
    ...each,
    metadata: JSON.stringify(each.metadata),
    network: each.network ? JSON.stringify(each.network) : null,
    resumes: Number(each.resumes),
    isPrivate: Number(each.isPrivate),
  })
}

/** Undefined for a sandbox that no client of E2B's made. */
export function findE2bSandbox(db: Database, sandboxId: string): E2bSandbox | undefined {
  const row = db
    .query<Row, { sandboxId: string }>(`select ${columns} from e2b_sandboxes e where e.sandbox_id = $sandboxId`)
    .get({ sandboxId })
  return row ? fromRow(row) : undefined
}

/** The team of a sandbox that a client of E2B's made. */
export const findE2bTeam = (db: Database, sandboxId: string): string | undefined =>
  db
    .query<{ teamId: string }, { sandboxId: string }>(
      `select s.team_id as teamId from e2b_sandboxes e join sandboxes s on s.id = e.sandbox_id
       where e.sandbox_id = $sandboxId`,
    )
    .get({ sandboxId })?.teamId

/** A page of a team's sandboxes. */
export const listE2bSandboxes = (db: Database, teamId: string, page: E2bPage): E2bSandbox[] =>
  db
    .query<Row, Record<string, string | number | null>>(
      `select ${columns} from e2b_sandboxes e join sandboxes s on s.id = e.sandbox_id
       where s.team_id = $teamId
         and ($after is null or case when $isAscending then e.sandbox_id > $after else e.sandbox_id < $after end)
         and ($template is null or e.template = $template)
         and ($from is null or s.created_at >= $from)
         and (case when e.paused_at is null then 'running' else 'paused' end) in (select value from json_each($states))
         and not exists (
           select 1 from json_each($metadata) wanted
           where not exists (
             select 1 from json_each(e.metadata) has where has.key = wanted.key and has.value = wanted.value))
       order by case when $isAscending then e.sandbox_id end, e.sandbox_id desc limit $limit`,
    )
    .all({
      teamId,
      limit: page.limit,
      after: page.after ?? null,
      isAscending: Number(page.isAscending),
      template: page.template ?? null,
      from: page.from ?? null,
      states: JSON.stringify(page.states),
      metadata: JSON.stringify(page.metadata),
    })
    .map(fromRow)

/** The sandboxes whose time is up, those that ended first coming first. */
export const listEndedE2bSandboxes = (db: Database, at: string): E2bSandbox[] =>
  db
    .query<Row, { at: string }>(
      `select ${columns} from e2b_sandboxes e where e.paused_at is null and e.ends_at <= $at order by e.ends_at limit 100`,
    )
    .all({ at })
    .map(fromRow)

/** When the next sandbox ends after this moment; undefined when none runs. */
export const findNextE2bEnd = (db: Database, after: string): string | undefined =>
  db
    .query<{ endsAt: string | null }, { after: string }>(
      'select min(ends_at) as endsAt from e2b_sandboxes where paused_at is null and ends_at > $after',
    )
    .get({ after })?.endsAt ?? undefined

/** Lets a key's token open a sandbox from now on. The key '' is the configured key. */
export function insertE2bToken(db: Database, sandboxId: string, keyId: string): void {
  mustLast(db)
  db.query(
    'insert into e2b_tokens (sandbox_id, key_id) values ($sandboxId, $keyId) on conflict (sandbox_id, key_id) do nothing',
  ).run({ sandboxId, keyId })
}

interface TokenPlace {
  sandboxId: string
  keyId: string
}

/** The keys whose tokens open a sandbox, or any sandbox when none is given: page by page, the youngest sandbox first. */
export const listE2bTokens = (
  db: Database,
  { limit, before, sandboxId }: { limit: number; before?: TokenPlace | undefined; sandboxId?: string | undefined },
): TokenPlace[] =>
  db
    .query<TokenPlace, { limit: number; beforeId: string; beforeKey: string; sandboxId: string | null }>(
      `select sandbox_id as sandboxId, key_id as keyId from e2b_tokens
       where (sandbox_id, key_id) < ($beforeId, $beforeKey) and ($sandboxId is null or sandbox_id = $sandboxId)
       order by sandbox_id desc, key_id desc limit $limit`,
    )
    .all({ limit, beforeId: before?.sandboxId ?? '~', beforeKey: before?.keyId ?? '', sandboxId: sandboxId ?? null })
