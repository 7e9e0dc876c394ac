import { version } from '../../package.json'
import { isObject, parseJson } from '../read/json.ts'

/** The version of this format. It must be raised when an older threadbox cannot restore what is written. */
export const FORMAT_VERSION = 1

/** The first member of a backup, which describes it before anything else is read. */
export interface Manifest {
  format: number
  /** The version of threadbox that wrote it. */
  threadbox: string
  createdAt: string
  /** The schema of the database, which was copied at `databaseAt`. */
  schemaVersion: number
  databaseAt: string
}

/** The part of a backup that belongs to one sandbox. */
export interface SavedSandbox {
  id: string
  environmentId: string
  backend: string
  /** The moment at which its files were copied. Absent when the backup does not contain them. */
  at?: string
  /** How long its writes had to wait; 0 when it did not run. */
  frozenMs?: number
  /** Why its files are missing, or what else a restore needs. */
  note?: string
}

/** The part of a backup that belongs to one snapshot of a sandbox. */
export type SavedSnapshot = Pick<SavedSandbox, 'id' | 'backend' | 'at' | 'note'>

/** The last member. Nothing may follow it, and it lists every member but the first. */
export interface Contents {
  members: Record<string, { bytes: number; sha256: string }>
  sandboxes: SavedSandbox[]
  snapshots: SavedSnapshot[]
}

export const MANIFEST = 'manifest.json'
export const CONTENTS = 'checksums.json'

export const newManifest = (schemaVersion: number, databaseAt: Date): Manifest => ({
  format: FORMAT_VERSION,
  threadbox: version,
  createdAt: new Date().toISOString(),
  schemaVersion,
  databaseAt: databaseAt.toISOString(),
})

/** Reads the first member. Throws when this version cannot restore the backup. */
export function readManifest(text: string, knownSchema: number): Manifest {
  const value = parseJson(text)
  if (
    !isObject(value) ||
    typeof value.format !== 'number' ||
    typeof value.threadbox !== 'string' ||
    typeof value.createdAt !== 'string' ||
    typeof value.schemaVersion !== 'number' ||
    typeof value.databaseAt !== 'string'
  ) {
    throw new Error(`its ${MANIFEST} cannot be read`)
  }
  const { format, threadbox, createdAt, schemaVersion, databaseAt } = value
  if (format > FORMAT_VERSION || schemaVersion > knownSchema) {
    throw new Error(
      `it was written by a newer threadbox (${threadbox}, schema ${schemaVersion}; this one is ${version}, schema ${knownSchema}). Restore it with that version`,
    )
  }
  return { format, threadbox, createdAt, schemaVersion, databaseAt }
}

export function readContents(text: string): Contents {
  const value = parseJson(text)
  if (!isObject(value) || !isObject(value.members) || !Array.isArray(value.sandboxes)) throw unreadable()
  const members: Contents['members'] = {}
  for (const [name, member] of Object.entries(value.members)) {
    if (!isObject(member) || typeof member.bytes !== 'number' || typeof member.sha256 !== 'string') throw unreadable()
    members[name] = { bytes: member.bytes, sha256: member.sha256 }
  }
  // Backups of earlier versions have none.
  const snapshots = Array.isArray(value.snapshots) ? value.snapshots : []
  return { members, sandboxes: value.sandboxes.map(readSandbox), snapshots: snapshots.map(readSnapshot) }
}

function readSandbox(value: unknown): SavedSandbox {
  if (!isObject(value)) throw unreadable()
  const { id, environmentId, backend, at, frozenMs, note } = value
  if (typeof id !== 'string' || typeof environmentId !== 'string' || typeof backend !== 'string') throw unreadable()
  return {
    ...{ id, environmentId, backend },
    ...(typeof at === 'string' && { at }),
    ...(typeof frozenMs === 'number' && { frozenMs }),
    ...(typeof note === 'string' && { note }),
  }
}

function readSnapshot(value: unknown): SavedSnapshot {
  if (!isObject(value)) throw unreadable()
  const { id, backend, at, note } = value
  if (typeof id !== 'string' || typeof backend !== 'string') throw unreadable()
  return { id, backend, ...(typeof at === 'string' && { at }), ...(typeof note === 'string' && { note }) }
}

const unreadable = () => new Error(`its ${CONTENTS} cannot be read`)

/** The names that members may have, besides the first and the last one. Each is a file of a data directory. */
const members = [
  /^threadbox\.(db|key)$/,
  /^bundles\/[0-9a-f]{64}$/,
  /^bases?\/[A-Za-z0-9][A-Za-z0-9._-]{0,63}\.tar$/,
  /^(sandboxes|snapshots)\/[A-Za-z0-9][A-Za-z0-9_-]{0,79}\/(meta\.json|disk\.img|box\.tar)$/,
  /^docker(-snapshots)?\/[A-Za-z0-9][A-Za-z0-9_-]{0,79}\/(container\.json|image\.tar|volume-\d{1,3}\.tar)$/,
]

/** The names at the top of a data directory that a backup can contain. */
export const topNames: readonly string[] = [
  ...[
    'threadbox.db',
    'threadbox.key',
    'bundles',
    'bases',
    'base',
    'sandboxes',
    'snapshots',
    'docker',
    'docker-snapshots',
  ],
]

export const isMemberName = (name: string): boolean => members.some(pattern => pattern.test(name))

const FILE_NAME = /^threadbox-backup-(\d{4})-(\d\d)-(\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z\.tar\.zst(\.age)?$/

export const newFileName = (at: Date, isEncrypted: boolean): string =>
  `threadbox-backup-${at.toISOString().replace(/[:.]/g, '-')}.tar.zst${isEncrypted ? '.age' : ''}`

/** When a backup was made, read from its name. Undefined for the name of another file. */
export function timeOfFile(name: string): Date | undefined {
  const [, year, month, day, hour, minute, second, ms] = FILE_NAME.exec(name) ?? []
  return year ? new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`) : undefined
}
