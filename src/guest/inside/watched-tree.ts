import { type Dirent, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { FileChange } from '../../plugin-api/index.ts'
import { GuestError } from '../wire/requests.ts'
import { isDraft, isNewDraft } from './draft-records.ts'
import { changesIn, full, type Inotify, type KernelChange, masks } from './inotify.ts'
import { isOwn } from './own-files.ts'

/** A tree whose changes are read from an inotify descriptor. */
export interface WatchedTree {
  /** What has changed, in the order in which it did. Throws a GuestError when changes were lost, or the tree is too large. */
  read(bytes: Buffer): FileChange[]
  /** False once the directory itself was deleted. */
  isThere(): boolean
}

/** The kernel counts each watched directory. */
const MAX_DIRECTORIES = 8192
const MAX_ANNOUNCED = 10_000

/**
 * Watches a directory, and when that is wanted all below it: also directories that come later, of which what is in them already
 * counts as created. Names are relative to the root. Throws a GuestError for a tree that is too large.
 *
 * Over 100 lines: every change moves the same state on.
 */
export function createWatchedTree(inotify: Inotify, fd: number, root: string, isRecursive: boolean): WatchedTree {
  /** The path of each watch. */
  const directories = new Map<number, string>()
  /** The paths that were reported as created because a listing found them; the kernel may report them again. */
  const announced = new Set<string>()
  /** A directory that was moved away or within the tree: the next change tells which. */
  let moving: { cookie: number; path: string } | undefined
  /** A file that the guest moved to its final name. */
  let draft: { cookie: number; isNew: boolean } | undefined
  let isThere = true

  const add = (path: string, isRoot: boolean, found?: (path: string) => void): void => {
    if (isOwn(path)) return
    if (directories.size >= MAX_DIRECTORIES) throw full()
    const watch = inotify.add(fd, path, isRoot)
    const entries = entriesOf(path)
    // The directory is gone again, or the path never was a directory.
    if (!entries) return
    if (watch === undefined) throw full()
    directories.set(watch, path)
    if (!isRecursive) return
    for (const entry of entries) {
      const below = join(path, entry.name)
      if (isDraft(entry.name)) continue
      found?.(below)
      if (entry.isDirectory()) add(below, false, found)
    }
  }
  add(root, true)
  if (directories.size === 0) throw full()
  const rootWatch = [...directories.keys()][0]

  const drop = (path: string) => {
    for (const [watch, each] of directories) {
      if (each !== path && !each.startsWith(`${path}/`)) continue
      inotify.remove(fd, watch)
      directories.delete(watch)
    }
  }
  const settle = (cookie?: number) => {
    if (!moving || moving.cookie === cookie) return
    drop(moving.path)
    moving = undefined
  }

  function* changesOf({ watch, mask, cookie, name }: KernelChange): Generator<FileChange, void> {
    if (mask & masks.overflow)
      throw new GuestError('sandbox_unavailable', 'Too many files changed at once: some changes are lost.')
    settle(cookie)
    const directory = directories.get(watch)
    if (directory === undefined) return
    if (mask & masks.ignored) return void directories.delete(watch)
    if (name === '') return yield* ofItself(watch, mask)
    if (isDraft(name)) {
      if (mask & masks.movedFrom) draft = { cookie, isNew: isNewDraft(name) }
      return
    }
    const path = join(directory, name)
    const change = (type: FileChange['type']): FileChange => ({ name: relative(root, path), type })
    const isDirectory = (mask & masks.isDirectory) !== 0
    if (mask & masks.movedTo && draft?.cookie === cookie) {
      if (draft.isNew) yield change('create')
      yield change('write')
      draft = undefined
      return
    }
    if (mask & (masks.create | masks.movedTo)) {
      if (!announced.delete(path)) yield change('create')
      if (isRecursive && isDirectory) yield* came(path, mask)
    }
    if (mask & masks.modify) yield change('write')
    if (mask & masks.delete) {
      announced.delete(path)
      yield change('remove')
    }
    if (mask & masks.movedFrom) {
      announced.delete(path)
      if (isRecursive && isDirectory) moving = { cookie, path }
      yield change('rename')
    }
    if (mask & masks.attributes) yield change('chmod')
  }

  /** The directory above also reports changes of a directory itself, except for the root. */
  function* ofItself(watch: number, mask: number): Generator<FileChange, void> {
    if (watch !== rootWatch) return
    if (mask & masks.attributes) yield { name: '.', type: 'chmod' }
    if (mask & masks.moveSelf) yield { name: '.', type: 'rename' }
    if (!(mask & masks.deleteSelf)) return
    isThere = false
    yield { name: '.', type: 'remove' }
  }

  /** Reports a directory that has appeared. */
  function* came(path: string, mask: number): Generator<FileChange, void> {
    if (mask & masks.movedTo && moving) {
      const { path: before } = moving
      moving = undefined
      for (const [watch, each] of directories) {
        if (each === before || each.startsWith(`${before}/`)) directories.set(watch, path + each.slice(before.length))
      }
      return
    }
    const found: string[] = []
    add(path, false, below => void found.push(below))
    if (mask & masks.movedTo) return
    if (announced.size > MAX_ANNOUNCED) announced.clear()
    for (const below of found) {
      announced.add(below)
      yield { name: relative(root, below), type: 'create' }
    }
  }

  return {
    read(bytes) {
      const changes: FileChange[] = []
      for (const each of changesIn(bytes)) changes.push(...changesOf(each))
      settle()
      return changes
    },
    isThere: () => isThere,
  }
}

/** Undefined when the path is not a directory. */
function entriesOf(path: string): Dirent[] | undefined {
  try {
    return readdirSync(path, { withFileTypes: true })
  } catch {
    return undefined
  }
}
