import { type BigIntStats, constants } from 'node:fs'
import { lchown, lstat, mkdir, open, readdir, readFile, readlink, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, normalize } from 'node:path'
import { excerpt } from '../../bounds.ts'
import { permissionsOf } from '../../environment/permissions.ts'
import type { FileInfo } from '../../plugin-api/index.ts'
import { codeOf } from '../../read/error-code.ts'
import { type Call, lanes } from '../wire/call.ts'
import { GuestError } from '../wire/requests.ts'
import type { Attributes } from './attributes.ts'
import { assertNotOwn, assertNotOwnPath, isOwn } from './own-files.ts'
import { findPerson } from './person.ts'

const PIECE_BYTES = 256 * 1024

/** A listing longer than this is refused rather than cut. */
const MAX_ENTRIES = 10_000

/** Sends a regular file's bytes. Never waits for a FIFO or a device: they are refused after an open that cannot block. */
export async function sendFile(call: Call, path: string, asDescriptor = false): Promise<void> {
  const file = await openRegular(path, constants.O_RDONLY)
  try {
    const { size } = await file.stat()
    if (asDescriptor && size > PIECE_BYTES) {
      call.answer({ size, descriptor: file.fd })
      // The server ends the call when it has read the file.
      return void (await call.result)
    }
    call.answer({ size })
    const buffer = Buffer.allocUnsafe(PIECE_BYTES)
    while (!call.isOver) {
      const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, null)
      if (bytesRead === 0) break
      await call.send(lanes.down, buffer.subarray(0, bytesRead))
    }
  } finally {
    await file.close()
  }
}

/** With `attributes` the result has details. */
export async function describe(path: string, attributes?: Attributes): Promise<FileInfo | null> {
  await assertNotOwnPath(path)
  try {
    return await infoOf(path, await readNames(), attributes)
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

export async function list(path: string, depth: number, attributes?: Attributes): Promise<FileInfo[]> {
  await assertNotOwnPath(path)
  if (!(await stat(path)).isDirectory()) throw new GuestError('invalid_request', `Not a directory: ${excerpt(path)}`)
  const names = await readNames()
  const found: FileInfo[] = []
  const walk = async (directory: string, levels: number): Promise<void> => {
    for (const entry of await readdir(directory)) {
      const info = await infoOf(join(directory, entry), names, attributes).catch(() => undefined)
      if (!info) continue
      found.push(info)
      if (found.length > MAX_ENTRIES)
        throw new GuestError('invalid_request', `The listing has more than ${MAX_ENTRIES} entries.`)
      if (info.type === 'dir' && info.symlinkTarget === undefined && levels > 1 && !isOwn(info.path))
        await walk(info.path, levels - 1)
    }
  }
  await walk(path, depth)
  return found.sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Returns false when the directory existed. A new directory belongs to the owner. */
export async function makeDirectory(path: string, owner?: string): Promise<boolean> {
  const present = await stat(path).catch(() => undefined)
  if (present?.isDirectory()) return false
  await makeParents(path, owner)
  return true
}

/** Makes a directory and those above it that are missing. */
export async function makeParents(path: string, owner: string | undefined): Promise<void> {
  const first = await mkdir(path, { recursive: true })
  if (first === undefined || owner === undefined) return
  for (let at = path; at.length >= first.length; at = dirname(at)) await giveTo(at, owner)
}

/** Changes the owner of a path. When there is no such user, or only one user, nothing changes. */
export async function giveTo(path: string, owner: string): Promise<void> {
  const person = findPerson(owner)
  if (person) await lchown(path, person.uid, person.gid).catch(() => {})
}

export async function move(from: string, to: string): Promise<void> {
  await Promise.all([from, to].map(assertNotOwnPath))
  await lstat(from)
  await mkdir(dirname(to), { recursive: true })
  await rename(from, to)
}

export async function remove(path: string): Promise<void> {
  if (normalize(path) === '/') throw new GuestError('invalid_request', 'The root cannot be removed.')
  await assertNotOwnPath(path)
  await lstat(path)
  await rm(path, { recursive: true })
}

/** Throws for all that is no regular file, without waiting for a FIFO or a device. */
export async function openRegular(path: string, flags: number) {
  const file = await open(path, flags | constants.O_NONBLOCK | constants.O_NOCTTY, 0o644)
  try {
    await assertNotOwn(file.fd, path)
    if ((await file.stat()).isFile()) return file
    throw new GuestError('invalid_request', `Not a regular file: ${excerpt(path)}`)
  } catch (error) {
    await file.close()
    throw error
  }
}

const isMissing = (error: unknown) => ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')

interface Names {
  users: Map<bigint, string>
  groups: Map<bigint, string>
}

async function infoOf(path: string, names: Names, attributes?: Attributes): Promise<FileInfo> {
  const own = await lstat(path, { bigint: true })
  const symlinkTarget = own.isSymbolicLink() ? await readlink(path) : undefined
  const target: BigIntStats = symlinkTarget === undefined ? own : await stat(path, { bigint: true }).catch(() => own)
  return {
    name: basename(path),
    path,
    type: target.isDirectory() ? 'dir' : 'file',
    size: Number(target.size),
    mode: Number(target.mode) & 0o7777,
    permissions: permissionsOf(own.isDirectory() ? 'd' : own.isSymbolicLink() ? 'l' : '-', Number(own.mode)),
    owner: names.users.get(own.uid) ?? String(own.uid),
    group: names.groups.get(own.gid) ?? String(own.gid),
    modifiedTime: own.mtime.toISOString(),
    ...(symlinkTarget !== undefined && { symlinkTarget }),
    ...(attributes && (await detailsOf(path, symlinkTarget !== undefined, attributes))),
  }
}

async function detailsOf(path: string, isLink: boolean, { read }: Attributes): Promise<Partial<FileInfo>> {
  if (!isLink) return { attributes: read(path) }
  const resolvedTarget = await realpath(path).catch(() => undefined)
  return resolvedTarget === undefined ? {} : { resolvedTarget }
}

async function readNames(): Promise<Names> {
  const [users, groups] = await Promise.all([readIds('/etc/passwd'), readIds('/etc/group')])
  return { users, groups }
}

async function readIds(path: string): Promise<Map<bigint, string>> {
  const text = await readFile(path, 'utf8').catch(() => '')
  const ids = new Map<bigint, string>()
  for (const line of text.split('\n')) {
    const [name, , id] = line.split(':')
    if (!name || !id || !/^\d+$/.test(id)) continue
    // The first line of an id names it, as everywhere.
    if (!ids.has(BigInt(id))) ids.set(BigInt(id), name)
  }
  return ids
}
