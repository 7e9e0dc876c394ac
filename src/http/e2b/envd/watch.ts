import { posix } from 'node:path'
import { ApiError } from '../../../errors.ts'
import type { EnvironmentFiles, FileChange } from '../../../plugin-api/index.ts'
import type { JsonObject } from '../../../read/json.ts'
import { ConnectError, toConnectError } from '../connect/error.ts'
import { type MessageWriter, timeoutMsOf } from '../connect/exchange.ts'
import { entryOf } from './entry.ts'
import { assertDirectory, type FilesUse, withFiles } from './filesystem.ts'
import type { Target } from './target.ts'

const types = {
  create: 'EVENT_TYPE_CREATE',
  write: 'EVENT_TYPE_WRITE',
  remove: 'EVENT_TYPE_REMOVE',
  rename: 'EVENT_TYPE_RENAME',
  chmod: 'EVENT_TYPE_CHMOD',
} as const

/** Events of a directory in their order, as messages. */
export type Events = AsyncIterable<object[]>

/** Begins to watch the directory that a message names. Throws not_found, invalid_argument and unimplemented. */
export async function openEvents({ files, path }: FilesUse, message: JsonObject, signal: AbortSignal): Promise<Events> {
  const watched = path(message)
  if (!files.watch) throw new ConnectError('unimplemented', 'The backend of this sandbox cannot watch directories.')
  await assertDirectory(files, watched)
  const changes = await files.watch(watched, { isRecursive: message.recursive === true, signal })
  return eventsOf(files, watched, changes, message.includeEntry === true)
}

async function* eventsOf(
  files: EnvironmentFiles,
  root: string,
  changes: AsyncIterable<FileChange[]>,
  hasEntries: boolean,
) {
  for await (const each of changes) {
    const events: object[] = []
    for (const { name, type } of each) {
      // A file that is gone, or renamed, has no entry.
      const info =
        hasEntries && type !== 'remove' && type !== 'rename'
          ? await files.info(posix.join(root, name), { details: true }).catch(() => undefined)
          : undefined
      events.push({ name, type: types[type], ...(info && { entry: entryOf(info) }) })
    }
    yield events
  }
}

/** Shows the changes in a directory until the caller has gone, the caller's time is over, or the directory is removed. */
export async function watchDir(
  target: Target,
  request: Request,
  message: JsonObject,
  to: MessageWriter,
): Promise<void> {
  const timeoutMs = timeoutMsOf(request)
  const late = new AbortController()
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => late.abort(), timeoutMs)
  try {
    await withFiles(target, request, async use => {
      const events = await openEvents(use, message, AbortSignal.any([to.signal, late.signal]))
      to.write({ start: {} })
      to.keepAlive({ keepalive: {} })
      for await (const some of events) {
        for (const filesystem of some) {
          to.write({ filesystem })
          await to.room()
        }
      }
    })
  } catch (error) {
    if (!late.signal.aborted && !to.signal.aborted) throw error
  } finally {
    clearTimeout(timer)
  }
  if (late.signal.aborted) throw new ConnectError('deadline_exceeded', 'context deadline exceeded')
}

/** Watchers that a caller polls. */
export interface Watchers {
  create(target: Target, request: Request, message: JsonObject): Promise<object>
  /** Returns what has happened since the last call. Throws not_found. */
  events(target: Target, message: JsonObject): object
  remove(target: Target, message: JsonObject): object
}

interface Watcher {
  sandboxId: string
  events: object[]
  end: AbortController
  /** Why there are no more events. */
  failure?: ConnectError
  idle: Timer
}

const MAX_WATCHERS = 1000
const MAX_WATCHERS_OF_SANDBOX = 32
const MAX_EVENTS = 10_000
/** How long a watcher may go without a poll before it is removed. */
const IDLE_MS = 60 * 60_000

export function createWatchers(): Watchers {
  const watchers = new Map<string, Watcher>()

  const find = ({ sandboxId }: Target, { watcherId }: JsonObject) => {
    const found = typeof watcherId === 'string' ? watchers.get(watcherId) : undefined
    if (found?.sandboxId !== sandboxId) throw new ConnectError('not_found', 'watcher with such an id not found')
    return { id: String(watcherId), watcher: found }
  }
  const drop = (id: string) => {
    const watcher = watchers.get(id)
    clearTimeout(watcher?.idle)
    watchers.delete(id)
    watcher?.end.abort()
  }
  const awaitPoll = (id: string) => {
    const timer = setTimeout(() => drop(id), IDLE_MS)
    timer.unref()
    return timer
  }
  const fill = async (watcher: Watcher, events: Events) => {
    for await (const some of events) {
      if (watcher.events.length + some.length > MAX_EVENTS)
        throw new ApiError('payload_too_large', 'Too many changes were not polled: some are lost.')
      watcher.events.push(...some)
    }
  }

  return {
    async create(target, request, message) {
      const { sandboxId } = target
      const own = [...watchers.values()].filter(each => each.sandboxId === sandboxId)
      if (own.length >= MAX_WATCHERS_OF_SANDBOX || watchers.size >= MAX_WATCHERS)
        throw new ConnectError(
          'resource_exhausted',
          `There are ${MAX_WATCHERS_OF_SANDBOX} watchers of this sandbox, or too many of all: remove some.`,
        )
      const id = `watcher_${crypto.randomUUID()}`
      const watcher: Watcher = { sandboxId, events: [], end: new AbortController(), idle: awaitPoll(id) }
      watchers.set(id, watcher)
      try {
        const events = await withFiles(target, request, use => openEvents(use, message, watcher.end.signal))
        fill(watcher, events).catch(error => {
          watcher.failure = toConnectError(error)
          watcher.end.abort()
        })
        return { watcherId: id }
      } catch (error) {
        drop(id)
        throw error
      }
    },
    events(target, message) {
      const { id, watcher } = find(target, message)
      clearTimeout(watcher.idle)
      watcher.idle = awaitPoll(id)
      if (watcher.failure && watcher.events.length === 0) {
        drop(id)
        throw watcher.failure
      }
      return { events: watcher.events.splice(0) }
    },
    remove(target, message) {
      drop(find(target, message).id)
      return {}
    },
  }
}
