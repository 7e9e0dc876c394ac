import { writeWhenFree } from '../../db/busy.ts'
import {
  findE2bSandbox,
  findE2bTeam,
  insertE2bToken,
  listE2bSandboxes,
  saveE2bSandbox,
} from '../../db/e2b-sandboxes.ts'
import { lasting } from '../../db/lasting.ts'
import { inTransaction } from '../../db/open.ts'
import { ApiError } from '../../errors.ts'
import type { E2bPage, E2bSandbox } from '../../model/e2b-sandbox.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { changeNetwork } from '../sandboxes/networks.ts'
import { createSandbox, getSandbox, removeSandbox } from '../sandboxes/sandboxes.ts'
import { createFromSnapshot } from '../snapshots/create-from-snapshot.ts'
import { forkSandbox } from '../snapshots/fork-sandbox.ts'
import { readE2bId } from './ids.ts'
import { pause } from './lives.ts'
import { findTemplate } from './templates.ts'

/** A sandbox with what E2B's clients know of it. */
export interface KnownSandbox {
  sandbox: Sandbox
  e2b: E2bSandbox
}

export interface E2bRequest
  extends Pick<
    E2bSandbox,
    'template' | 'metadata' | 'timeoutMs' | 'onEnd' | 'resumes' | 'isPrivate' | 'maskedHost' | 'network'
  > {
  envs: Record<string, string>
  /** The same rules in this server's form. */
  rules: { networkAllowOut?: string[]; networkDenyOut?: string[] }
}

/** Makes a sandbox that ends by itself. Throws not_found for an unknown template, and as `createSandbox` does. */
export async function createE2bSandbox(
  runtime: Runtime,
  caller: Caller,
  { envs, rules, ...wish }: E2bRequest,
  signal: AbortSignal,
): Promise<KnownSandbox> {
  const { db } = runtime
  const start = await findTemplate(runtime, caller, wish.template)
  let made: E2bSandbox | undefined
  const store = ({ id: sandboxId }: Sandbox) => {
    made = { ...wish, sandboxId, endsAt: after(wish.timeoutMs) }
    saveE2bSandbox(db, made)
    insertE2bToken(db, sandboxId, caller.keyId ?? '')
  }
  const request = { ...rules, envs, timeoutMs: null, store }
  const sandbox =
    'snapshot' in start
      ? await createFromSnapshot(runtime, caller, { ...start, ...request }, { signal })
      : await createSandbox(runtime, caller, { ...start, ...request }, signal)
  runtime.e2b.wake()
  if (!made) throw new Error('a sandbox without its row')
  return { sandbox, e2b: made }
}

/** Throws sandbox_not_found for a sandbox of another team, and for one that was not made by a client of E2B's. */
export function getE2bSandbox(runtime: Runtime, caller: Caller, id: string): KnownSandbox {
  const sandboxId = readE2bId(id)
  const e2b = sandboxId === undefined ? undefined : findE2bSandbox(runtime.db, sandboxId)
  if (!e2b) throw new ApiError('sandbox_not_found', 'There is no such sandbox.')
  return { sandbox: getSandbox(runtime, caller, e2b.sandboxId), e2b }
}

/** Lists a page of the sandboxes of the caller's team. */
export const listOwnE2bSandboxes = (runtime: Runtime, caller: Caller, page: E2bPage): KnownSandbox[] =>
  listE2bSandboxes(runtime.db, caller.teamId, page).map(e2b => ({
    e2b,
    sandbox: getSandbox(runtime, caller, e2b.sandboxId),
  }))

/** Changes a sandbox while no other change of it goes on. Throws as `getE2bSandbox` does. */
const change = <Result>(
  runtime: Runtime,
  caller: Caller,
  id: string,
  work: (known: KnownSandbox, save: (row: E2bSandbox) => Promise<KnownSandbox>) => Promise<Result>,
): Promise<Result> =>
  runtime.e2b.inTurn(getE2bSandbox(runtime, caller, id).sandbox.id, async () => {
    const { db, e2b } = runtime
    // An earlier change may have removed it.
    const known = getE2bSandbox(runtime, caller, id)
    return await work(known, async row => {
      await writeWhenFree(db, () =>
        inTransaction(db, () => {
          saveE2bSandbox(db, row)
          insertE2bToken(db, row.sandboxId, caller.keyId ?? '')
        }),
      )
      await lasting(db)
      e2b.wake()
      return { sandbox: known.sandbox, e2b: row }
    })
  })

/** What a client asks for when it connects. */
export interface ConnectRequest {
  /** Absent for the sandbox's own time to live. */
  timeoutMs?: number
  /** Whether to refuse a sandbox that runs. */
  isOnlyPaused?: boolean
  onEnd?: E2bSandbox['onEnd']
}

/**
 * Connects a client to a sandbox, which runs when this resolves. A paused sandbox starts with a new time to live; a running one
 * gets more time, and never less. Throws conflict for a running one when `isOnlyPaused` is set.
 */
export const connectE2bSandbox = (
  runtime: Runtime,
  caller: Caller,
  id: string,
  { timeoutMs, isOnlyPaused = false, onEnd }: ConnectRequest,
): Promise<KnownSandbox & { wasPaused: boolean }> =>
  change(runtime, caller, id, async ({ sandbox, e2b }, save) => {
    const wasPaused = e2b.pausedAt !== undefined
    if (isOnlyPaused && !wasPaused) throw new ApiError('conflict', 'The sandbox runs already.')
    const time = timeoutMs ?? e2b.timeoutMs
    const wanted = after(time)
    if (wasPaused) await start(runtime, sandbox)
    const { pausedAt: _, ...rest } = e2b
    const endsAt = wasPaused ? wanted : later(wanted, e2b.endsAt)
    const known = await save({ ...rest, timeoutMs: time, endsAt, ...(onEnd && { onEnd }) })
    return { ...known, wasPaused }
  })

/** Sets when a running sandbox ends, counted from now. Throws sandbox_not_found for a paused one. */
export const setE2bTimeout = (
  runtime: Runtime,
  caller: Caller,
  id: string,
  { timeoutMs, isOnlyLonger = false }: { timeoutMs: number; isOnlyLonger?: boolean },
): Promise<KnownSandbox> =>
  change(runtime, caller, id, ({ e2b }, save) => {
    assertRuns(e2b)
    const wanted = after(timeoutMs)
    if (isOnlyLonger) return save({ ...e2b, endsAt: later(wanted, e2b.endsAt) })
    return save({ ...e2b, timeoutMs, endsAt: wanted })
  })

/** Throws conflict for a sandbox that is paused already. */
export const pauseE2bSandbox = (runtime: Runtime, caller: Caller, id: string): Promise<void> =>
  change(runtime, caller, id, async ({ sandbox, e2b }) => {
    if (e2b.pausedAt !== undefined) throw new ApiError('conflict', 'The sandbox is paused already.')
    await pause(runtime, sandbox, e2b)
  })

/** Removes a sandbox wholly. Its open work is cut off first. */
export const removeE2bSandbox = (runtime: Runtime, caller: Caller, id: string): Promise<void> =>
  change(runtime, caller, id, async ({ sandbox }) => {
    runtime.e2b.cut(sandbox.id)
    await removeSandbox(runtime, sandbox, caller)
  })

/** The result of each fork that was asked for: a sandbox, or the error that prevented it. */
export type E2bFork = KnownSandbox | { error: ApiError }

/**
 * Makes several sandboxes from one moment of a running sandbox, each with its own time to live. Single forks may fail. Throws as
 * `forkSandbox` does.
 */
export async function forkE2bSandbox(
  runtime: Runtime,
  caller: Caller,
  id: string,
  { count, timeoutMs }: { count: number; timeoutMs: number },
  signal: AbortSignal,
): Promise<E2bFork[]> {
  const { db } = runtime
  const { sandbox, e2b } = getE2bSandbox(runtime, caller, id)
  assertRuns(e2b)
  const store = ({ id: sandboxId }: Sandbox) => {
    saveE2bSandbox(db, { ...e2b, sandboxId, timeoutMs, endsAt: after(timeoutMs) })
    insertE2bToken(db, sandboxId, caller.keyId ?? '')
  }
  const made = await forkSandbox(runtime, caller, sandbox.id, { count, timeoutMs: null, store }, signal)
  runtime.e2b.wake()
  return made.forks.map(fork => ('error' in fork ? fork : getE2bSandbox(runtime, caller, fork.sandbox.id)))
}

/** Replaces a running sandbox's network rules at once. Throws sandbox_not_found for a paused one. */
export const setE2bNetwork = (
  runtime: Runtime,
  caller: Caller,
  id: string,
  { network, rules }: Pick<E2bRequest, 'network' | 'rules'>,
): Promise<KnownSandbox> =>
  change(runtime, caller, id, async ({ sandbox, e2b }, save) => {
    assertRuns(e2b)
    const { networkAllowOut = null, networkDenyOut = null } = rules
    await changeNetwork(runtime, caller, sandbox, { networkAllowOut, networkDenyOut })
    const { network: _, ...rest } = e2b
    return await save({ ...rest, ...(network && { network }) })
  })

/**
 * Finds the sandbox that a request to one of its ports is for. With `wakes`, starts a paused one if its client allowed that.
 * Undefined when the sandbox does not run.
 */
export async function reachE2bSandbox(
  runtime: Runtime,
  sandboxId: string,
  { wakes }: { wakes: boolean },
): Promise<KnownSandbox | undefined> {
  const { db } = runtime
  const teamId = findE2bTeam(db, sandboxId)
  const e2b = findE2bSandbox(db, sandboxId)
  if (teamId === undefined || !e2b) return undefined
  if (runs(e2b)) return { e2b, sandbox: getSandbox(runtime, { teamId }, sandboxId) }
  if (!wakes || !e2b.resumes) return undefined
  return await runtime.e2b.inTurn(sandboxId, async () => {
    const now = findE2bSandbox(db, sandboxId)
    if (!now) return undefined
    const sandbox = getSandbox(runtime, { teamId }, sandboxId)
    if (runs(now)) return { e2b: now, sandbox }
    await start(runtime, sandbox)
    const { pausedAt: _, ...rest } = now
    const woken = { ...rest, endsAt: after(now.timeoutMs) }
    await writeWhenFree(db, () => saveE2bSandbox(db, woken))
    runtime.e2b.wake()
    return { e2b: woken, sandbox }
  })
}

/** Any use starts an environment that does not run. */
async function start({ environments }: Runtime, sandbox: Sandbox): Promise<void> {
  const environment = await environments.get(sandbox)
  await environment.files.info('/')
}

const runs = ({ pausedAt, endsAt }: E2bSandbox): boolean => pausedAt === undefined && endsAt > new Date().toISOString()

function assertRuns({ pausedAt }: E2bSandbox): void {
  if (pausedAt !== undefined) throw new ApiError('sandbox_not_found', 'The sandbox is paused.')
}

const after = (ms: number): string => new Date(Date.now() + ms).toISOString()

const later = (a: string, b: string): string => (Date.parse(a) > Date.parse(b) ? a : b)
