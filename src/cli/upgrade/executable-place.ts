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
 * An executable and what lies beside it: `.previous` is the one before, `.next` one that is not tried yet, `.upgrade` says that an
 * upgrade is under way. At each moment there is a whole executable under its own name.
 */
export interface ExecutablePlace {
  readonly path: string
  readonly previous: string
  readonly next: string
  /** Keeps other upgrades of this executable out, until `release`. Undefined while there is one. */
  lock(): { release(): void } | undefined
  /** Notes what an upgrade is about to put here, until `settle`. */
  begin(note: UpgradeNote): void
  /** What an upgrade has noted that did not end. */
  readonly begun: UpgradeNote | undefined
  settle(): void
  /** Keeps what is here as the previous one. */
  keep(): Promise<void>
  /** Replaces what is here by `next`, in one step. */
  put(): Promise<void>
  /** Makes the previous one `next` too. */
  recall(): Promise<void>
  /** Puts the previous one here again. `isSwapped`: what was here is the previous one then, as it was before it was put here. */
  undo(isSwapped: boolean): Promise<void>
  dropNext(): void
}

export interface UpgradeNote {
  /** SHA-256 of the new executable. */
  next: string
  /** The schema of the database before it, when there was one. */
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

/** Gives a file a second name, which may be another file's until then. Where there are no links it is copied. */
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
  // A rename to another name of the same file does nothing, and leaves both.
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
