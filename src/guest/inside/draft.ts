import { constants } from 'node:fs'
import { copyFile, type FileHandle, open, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf } from '../../read/error-code.ts'
import { draftName, PREFIX, RECORDS } from './draft-records.ts'

/** A file that is written beside another, whose place it takes when it is whole. */
export interface Draft {
  file: FileHandle
  /** Puts what was written in the target's place, with that one's owner and mode. */
  commit(): Promise<void>
  /** Nothing is left of it. Idempotent; after a commit it does nothing. */
  discard(): Promise<void>
}

/** What is being replaced. */
export interface Replaced {
  uid: number
  gid: number
  mode: number
  nlink: number
  size: number
}

/** Undefined where nothing can be made beside the target, as for files of the kernel. Throws when the disk is full. */
export async function openDraft(target: string, replaced: Replaced | undefined): Promise<Draft | undefined> {
  const id = draftName(replaced === undefined)
  const path = join(dirname(target), PREFIX + id)
  const record = join(RECORDS, id)
  await symlink(path, record).catch(() => {})
  const forget = () => rm(record, { force: true }).catch(() => {})
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  let file: FileHandle
  try {
    file = await open(path, flags, replaced ? 0o600 : 0o644)
  } catch (error) {
    await forget()
    if (isFull(error)) throw error
    return undefined
  }
  let isOver = false

  async function commit(): Promise<void> {
    const isAlike = !replaced || (await makeLike(file, replaced))
    // Without it a loss of power could leave neither. A new file has nothing to lose, and a sync takes ten milliseconds.
    if (replaced && replaced.size > 0) await file.sync()
    // Other names of the file would go on with what it was.
    const moved = isAlike && (replaced?.nlink ?? 1) === 1 && (await moveTo(path, target))
    if (moved) return await end(false)
    await copyFile(path, target)
    await end(true)
  }

  async function end(isThere: boolean): Promise<void> {
    if (isOver) return
    isOver = true
    await file.close()
    if (isThere) await rm(path, { force: true })
    await forget()
  }

  return { file, commit, discard: () => end(true) }
}

/** False where this process may not give files away. */
async function makeLike(file: FileHandle, { uid, gid, mode }: Replaced): Promise<boolean> {
  await file.chmod(mode & 0o7777)
  try {
    const own = await file.stat()
    if (own.uid === uid && own.gid === gid) return true
    await file.chown(uid, gid)
    // A change of the owner takes some bits away.
    await file.chmod(mode & 0o7777)
    return true
  } catch {
    return false
  }
}

/** False where something is mounted on the target. */
async function moveTo(path: string, target: string): Promise<boolean> {
  try {
    await rename(path, target)
    return true
  } catch (error) {
    if (isFull(error)) throw error
    return false
  }
}

const isFull = (error: unknown) => ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(codeOf(error) ?? '')
