import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { lockForWork } from '../../db/lock.ts'
import { replaceFile, syncPath } from '../../disk/lasting-files.ts'
import { digestOf } from '../../guest/host/install.ts'
import { codeOf } from '../../read/error-code.ts'
import { objectOf, parseJson } from '../../read/json.ts'

/**
 * An executable and the files beside it: `.previous` is the one before, `.next` is one that is not tried yet, and `.upgrade` says
 * that an upgrade goes on. At every moment there is a whole executable under its own name.
 */
export interface ExecutablePlace {
  readonly path: string
  readonly previous: string
  readonly next: string
  /** Prevents other upgrades of this executable until `release`. Undefined while another one goes on. */
  lock(): { release(): void } | undefined
  /** Notes what an upgrade is about to put here; `settle` removes the note. */
  begin(note: UpgradeNote): void
  /** The note of an upgrade that did not end. */
  readonly begun: UpgradeNote | undefined
  settle(): void
  /** Keeps the present executable as the previous one. */
  keep(): Promise<void>
  /** Replaces the present executable by `next` in one step. */
  put(): Promise<void>
  /** Copies the previous executable to `next` as well. */
  recall(): Promise<void>
  /** Puts the previous executable back. With `isSwapped`, the replaced one becomes the previous one again, as it was before. */
  undo(isSwapped: boolean): Promise<void>
  dropNext(): void
}

export interface UpgradeNote {
  /** SHA-256 of the new executable. */
  next: string
  /** The schema of the database before the upgrade, when there was a database. */
  schema?: number
}

export function placeOf(path: string): ExecutablePlace {
  const [previous, next, note] = [`${path}.previous`, `${path}.next`, `${path}.upgrade`]
  const sync = () => syncPath(dirname(path))
  const put = async () => {
    const { mode, uid, gid } = statSync(path)
    chmodSync(next, mode)
    if (process.getuid?.() === 0) chownSync(next, uid, gid)
    await syncPath(next)
    renameSync(next, path)
    await sync()
  }
  const recall = () => alsoCall(previous, next)
  return {
    path,
    previous,
    next,
    lock: () => lockForWork(dirname(path), `${basename(path)}.upgrade.lock`),
    begin: content => replaceFile(note, JSON.stringify(content), 0o644),
    get begun() {
      return readNote(note)
    },
    settle: () => rmSync(note, { force: true }),
    async keep() {
      await alsoCall(path, previous)
      await sync()
    },
    put,
    recall,
    async undo(isSwapped) {
      const failed = `${path}.failed`
      if (isSwapped) await alsoCall(path, failed)
      await recall()
      await put()
      if (isSwapped) renameSync(failed, previous)
    },
    dropNext: () => rmSync(next, { force: true }),
  }
}

/** Gives a file a second name, replacing the file of that name. Where the file system has no links, it is copied. */
async function alsoCall(file: string, name: string): Promise<void> {
  const draft = `${name}.${process.pid}`
  rmSync(draft, { force: true })
  try {
    linkSync(file, draft)
  } catch (error) {
    if (!['EPERM', 'EXDEV', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK'].includes(codeOf(error) ?? '')) throw error
    copyFileSync(file, draft, constants.COPYFILE_FICLONE)
    await syncPath(draft)
  }
  renameSync(draft, name)
  // Renaming a file to another name of the same file does nothing, and leaves both names.
  rmSync(draft, { force: true })
}

function readNote(path: string): UpgradeNote | undefined {
  try {
    const { next, schema } = objectOf(parseJson(readFileSync(path, 'utf8'))) ?? {}
    if (typeof next !== 'string') return undefined
    return { next, ...(typeof schema === 'number' && { schema }) }
  } catch {
    return undefined
  }
}

/** Returns the SHA-256 of a file, undefined when the file is missing. */
export const findDigest = (path: string): Promise<string | undefined> =>
  digestOf(path).catch(error => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  })
