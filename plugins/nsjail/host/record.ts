import { existsSync, renameSync } from 'node:fs'
import { readFile, realpath, writeFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { isSafeId } from '../../../src/guest/host/guest-backend.ts'
import type { Limits } from '../../../src/plugin-api/index.ts'
import { codeOf } from '../../../src/read/error-code.ts'
import { isObject, objectOf, parseJson } from '../../../src/read/json.ts'
import type { EnvironmentPaths } from './layout.ts'
import { isUserIdRange, type UserIdRange } from './user-ids.ts'

/** A snapshot whose files lie below what an environment has written. */
export interface Layer {
  snapshotId: string
  /** The user ids that own its files. Undefined when the server of an ordinary user took the snapshot. */
  userIdRange?: UserIdRange
}

/** Properties that an environment keeps. The record is written last; a directory without one is an unfinished create and is deleted. */
export interface EnvironmentRecord {
  /** Undefined when an ordinary user's server made it. */
  userIdRange?: UserIdRange
  /** Path of the lower layer on the host. */
  base: string
  /** The base is made of the host: its /usr is shown too. */
  isHostBase: boolean
  /** Its disk is an image of the size that is the limit. */
  hasImage: boolean
  limits: Limits
  /** The layers between its base and its disk, newest first. */
  layers: readonly Layer[]
}

/** The place of an environment's or a snapshot's record. */
type RecordPaths = Pick<EnvironmentPaths, 'id' | 'directory' | 'record'>

const VERSION = 1
const limitNames = ['memoryMb', 'processes', 'cpus', 'diskMb'] as const

/** Writes a draft of the record. The environment exists once the returned function has renamed the draft. */
export async function draftRecord(paths: RecordPaths, record: EnvironmentRecord): Promise<() => void> {
  const draft = `${paths.record}.new`
  const { userIdRange: slot, base, isHostBase: host, hasImage: image, limits } = record
  const layers = record.layers.length > 0 ? record.layers : undefined
  const text = `${JSON.stringify({ version: VERSION, id: paths.id, slot, base, host, image, limits, layers })}\n`
  await writeFile(draft, text, { mode: 0o600, flush: true })
  return () => renameSync(draft, paths.record)
}

/** Undefined when the environment does not exist. Throws when its record is damaged. */
export async function readRecord(paths: RecordPaths): Promise<EnvironmentRecord | undefined> {
  const content = await readFile(paths.record, 'utf8').catch(error => {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined
    throw error
  })
  if (content === undefined) return undefined
  const record = parseRecord(content, paths.id)
  if (!record) throw new Error(`${paths.record} is damaged`)
  return { ...record, base: await relocateBase(paths, record.base) }
}

/** Finds a base in this data directory whose recorded path is that of the data directory that it was moved or copied from. */
async function relocateBase(paths: RecordPaths, base: string): Promise<string> {
  const [parent, former] = [basename(dirname(base)), dirname(dirname(base))]
  // The operator may have a directory of such a name too.
  const isFormer = !existsSync(former) || existsSync(join(former, 'threadbox.db'))
  if ((parent !== 'base' && parent !== 'bases') || !isFormer) return base
  const own = join(dirname(dirname(paths.directory)), parent, basename(base))
  return realpath(own).catch(() => base)
}

function parseRecord(content: string, id: string): EnvironmentRecord | undefined {
  const {
    version,
    id: named,
    slot,
    base,
    host,
    image,
    limits: given,
    layers: below,
  } = objectOf(parseJson(content)) ?? {}
  if (version !== VERSION || named !== id) return undefined
  if (slot !== undefined && !isUserIdRange(slot)) return undefined
  if (typeof base !== 'string' || !isAbsolute(base) || typeof host !== 'boolean' || typeof image !== 'boolean') return
  const [limits, layers] = [parseLimits(given), parseLayers(below)]
  const range = slot === undefined ? undefined : { userIdRange: slot }
  return limits && layers && { ...range, base, isHostBase: host, hasImage: image, limits, layers }
}

function parseLayers(value: unknown = []): Layer[] | undefined {
  if (!Array.isArray(value)) return undefined
  const layers = value.flatMap((each: unknown) => {
    const { snapshotId, userIdRange } = objectOf(each) ?? {}
    if (typeof snapshotId !== 'string' || !isSafeId(snapshotId)) return []
    if (userIdRange === undefined) return [{ snapshotId }]
    return isUserIdRange(userIdRange) ? [{ snapshotId, userIdRange }] : []
  })
  return layers.length === value.length ? layers : undefined
}

function parseLimits(value: unknown): Limits | undefined {
  if (!isObject(value)) return undefined
  const limits: Limits = {}
  for (const name of limitNames) {
    const limit = value[name]
    if (limit === undefined) continue
    if (typeof limit !== 'number' || !(limit > 0)) return undefined
    limits[name] = limit
  }
  return limits
}
