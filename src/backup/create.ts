import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { copyDatabase, type DatabaseCopy } from '../db/snapshot.ts'
import { messageOf } from '../errors.ts'
import type { SandboxCopies, SandboxCopy } from '../plugin-api/index.ts'
import type { Address } from './backup-place.ts'
import {
  CONTENTS,
  type Contents,
  MANIFEST,
  newFileName,
  newManifest,
  type SavedSandbox,
  type SavedSnapshot,
} from './format.ts'
import { encrypts, type Secrets, seal } from './sealing.ts'
import { type Member, writeTar } from './write-tar.ts'
import { compress } from './zstd.ts'

/** The operations of backends that a backup needs. */
export interface Sources {
  /** Finds out how a backend's sandboxes are copied. Undefined when the backend cannot copy them. */
  findCopies(backend: string): SandboxCopies | undefined
  /** Lists the data directory's bases, by the member names that they get. */
  listBases(): Promise<string[]>
  packBase(tree: string, archive: string): Promise<void>
}

export interface CreateOptions {
  dataDirectory: string
  to: Address
  /** The ids of sandboxes, or of their environments. */
  sandboxes: 'all' | 'none' | readonly string[]
  secrets: Secrets
  sources: Sources
  onStep(what: string): void
}

export interface CreatedBackup {
  /** The path or address of the backup. */
  backup: string
  bytes: number
  /** The moment as of which the database was copied. */
  at: string
  sandboxes: SavedSandbox[]
  snapshots: SavedSnapshot[]
}

/**
 * Writes a backup of a data directory, whether a server runs on it or not. When it cannot be written, this rejects and leaves
 * nothing under its name. The result tells which single sandboxes could not be saved.
 */
export async function createBackup(options: CreateOptions): Promise<CreatedBackup> {
  const { dataDirectory, to, secrets, onStep } = options
  await removeDeadDrafts(dataDirectory)
  const draft = join(dataDirectory, `${DRAFT}${process.pid}`)
  await mkdir(draft, { mode: 0o700 })
  try {
    onStep('copying the database')
    const at = new Date()
    const database = copyDatabase(join(dataDirectory, 'threadbox.db'), join(draft, 'threadbox.db'))
    const chosen = choose(database, options.sandboxes)
    const contents: Contents = { members: {}, sandboxes: [], snapshots: [] }
    const members = listMembers({ ...options, draft, at, database, chosen, contents })
    const tar = writeTar(members, ({ name, ...written }) => {
      contents.members[name] = written
    })
    const name = to.name ?? newFileName(at, encrypts(secrets))
    const bytes = await to.place.write(name, await seal(compress(tar), secrets))
    return {
      backup: to.place.describe(name),
      bytes,
      at: at.toISOString(),
      sandboxes: contents.sandboxes,
      snapshots: contents.snapshots,
    }
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

const DRAFT = '.backup-'

/** Removes copies of the database and of disks that killed processes have left. */
async function removeDeadDrafts(dataDirectory: string): Promise<void> {
  for (const name of await readdir(dataDirectory)) {
    const pid = name.startsWith(DRAFT) ? name.slice(DRAFT.length) : ''
    const isDead = /^\d+$/.test(pid) && (Number(pid) === process.pid || !existsSync(`/proc/${pid}`))
    if (isDead) await rm(join(dataDirectory, name), { recursive: true, force: true })
  }
}

/** Throws when an id belongs to no sandbox. */
function choose({ sandboxes }: DatabaseCopy, chosen: CreateOptions['sandboxes']): ReadonlySet<string> {
  if (chosen === 'none') return new Set()
  if (chosen === 'all') return new Set(sandboxes.map(({ id }) => id))
  const found = chosen.map(wanted => {
    const sandbox = sandboxes.find(({ id, environmentId }) => id === wanted || environmentId === wanted)
    if (!sandbox) throw new Error(`there is no sandbox ${wanted}`)
    return sandbox.id
  })
  return new Set(found)
}

interface Work extends CreateOptions {
  draft: string
  at: Date
  database: DatabaseCopy
  chosen: ReadonlySet<string>
  contents: Contents
}

/** Yields all members in their order. A copy is made when its turn comes, and removed when it is written. */
async function* listMembers(work: Work): AsyncGenerator<Member, void> {
  const { dataDirectory, draft, at, database, chosen, contents, sources, onStep } = work
  yield { name: MANIFEST, from: toText(newManifest(database.schemaVersion, at)) }
  yield { name: 'threadbox.db', from: join(draft, 'threadbox.db') }
  await rm(join(draft, 'threadbox.db'))
  const key = join(dataDirectory, 'threadbox.key')
  if (existsSync(key)) yield { name: 'threadbox.key', from: key }
  for (const name of database.bundles) {
    const path = join(dataDirectory, 'bundles', name)
    // The version may be removed meanwhile, and its file with it.
    if (existsSync(path)) yield { name: `bundles/${name}`, from: path }
  }
  const snapshots = work.sandboxes === 'none' ? [] : database.snapshots
  if (chosen.size > 0 || snapshots.length > 0) {
    for (const tree of await sources.listBases()) {
      onStep(`packing ${tree}`)
      const archive = join(draft, 'base.tar')
      await sources.packBase(tree, archive)
      yield { name: `${tree}.tar`, from: archive }
      await rm(archive)
    }
  }
  for (const { id, backend, isRemoved } of snapshots) {
    onStep(`copying ${id}`)
    const copy = join(draft, id)
    const { note, files } = await saveSnapshot(work, { id, backend, isRemoved }, copy)
    // What is left of a removed snapshot may be in the copies of sandboxes already.
    if (isRemoved && files.length === 0 && note === undefined) continue
    const at = files.length > 0 ? { at: new Date().toISOString() } : undefined
    contents.snapshots.push({ id, backend, ...at, ...(note !== undefined && { note }) })
    yield* files
    await rm(copy, { recursive: true, force: true })
  }
  for (const sandbox of database.sandboxes) {
    if (!chosen.has(sandbox.id)) {
      contents.sandboxes.push({ ...sandbox, note: 'it was not asked for' })
      continue
    }
    onStep(`copying ${sandbox.id}`)
    const copy = join(draft, sandbox.environmentId)
    const { saved, files } = await save(work, sandbox, copy)
    contents.sandboxes.push(saved)
    yield* files
    await rm(copy, { recursive: true, force: true })
  }
  yield { name: CONTENTS, from: toText(contents) }
}

/** Copies a sandbox. A failure becomes a note, because a backup of the others is worth having. */
async function save(
  work: Work,
  sandbox: Omit<SavedSandbox, 'at'>,
  copy: string,
): Promise<{ saved: SavedSandbox; files: SandboxCopy['files'] }> {
  const { dataDirectory, sources } = work
  try {
    await assertRoom(dataDirectory, sandbox.environmentId)
    const elsewhere = `its files are on the backend ${sandbox.backend}, and not in this backup`
    const { files, ...taken } = (await sources.findCopies(sandbox.backend)?.snapshot(sandbox.environmentId, copy)) ?? {
      files: [],
      note: elsewhere,
    }
    const at = files.length > 0 ? { at: new Date().toISOString() } : undefined
    return { saved: { ...sandbox, ...at, ...taken }, files }
  } catch (error) {
    await rm(copy, { recursive: true, force: true })
    return { saved: { ...sandbox, note: `its files could not be saved: ${messageOf(error)}` }, files: [] }
  }
}

/** Copies a snapshot. A failure becomes a note, as for a sandbox. */
async function saveSnapshot(
  { sources }: Work,
  { id, backend, isRemoved }: DatabaseCopy['snapshots'][number],
  copy: string,
): Promise<Pick<SandboxCopy, 'files' | 'note'>> {
  try {
    const copies = sources.findCopies(backend)
    return (
      (await copies?.copySnapshot?.(id, copy, isRemoved)) ?? {
        files: [],
        note: `its files are on the backend ${backend}, and not in this backup`,
      }
    )
  } catch (error) {
    await rm(copy, { recursive: true, force: true })
    return { files: [], note: `its files could not be saved: ${messageOf(error)}` }
  }
}

const BLOCK_BYTES = 512
const SPARE_BYTES = 256 * 1024 * 1024

/** A copy must not fill the disk that all sandboxes use. */
async function assertRoom(dataDirectory: string, environmentId: string): Promise<void> {
  const image = await stat(join(dataDirectory, 'sandboxes', environmentId, 'disk.img')).catch(() => undefined)
  const { bavail, bsize } = await statfs(dataDirectory)
  const needed = (image?.blocks ?? 0) * BLOCK_BYTES + SPARE_BYTES
  if (bavail * bsize < needed) throw new Error(`its copy needs ${Math.ceil(needed / 1_000_000)} MB of free disk`)
}

const toText = (value: unknown) => Buffer.from(`${JSON.stringify(value, null, 2)}\n`)
