import { join } from 'node:path'
import { readSchema } from '../../db/copy-schema.ts'
import { wordsOf } from '../../errors.ts'
import { findServerProcess } from '../running-servers.ts'
import { askReadiness } from './ask-readiness.ts'
import type { ExecutablePlace } from './executable-place.ts'
import { findFailure, type Wanted } from './find-failure.ts'
import { restore, unrestore } from './restore.ts'
import { restart, runsFrom, type ServerProcess, start, stop, stopFailed } from './server-process.ts'

export interface Replacement {
  /** The SHA-256 of the executable at `next`, and its version. */
  sum: string
  version: string
  server: ServerProcess | undefined
  dataDirectory: string
  readyWithinMs: number
  /** Whether an unfinished upgrade has put the present executable here. Then the kept previous one stays. */
  isUntried: boolean
  /** Whether the new executable is in its place already. */
  isHere: boolean
  isBack: boolean
  /** The schema of the copy that the database goes back to. */
  restoresTo: number | undefined
  say(what: string): void
}

/** Puts `next` in its place and restarts the server. Throws when it went back, and says why. */
export async function replace(place: ExecutablePlace, replacement: Replacement): Promise<void> {
  const { sum, version, server, dataDirectory, isUntried, isHere, isBack, restoresTo, say } = replacement
  const database = join(dataDirectory, 'threadbox.db')
  const schema = (isUntried ? place.begun?.schema : undefined) ?? readSchema(database)
  const before = server && (await askReadiness(server.pid))
  place.begin({ next: sum, ...(schema !== undefined && { schema }) })
  if (!isHere) {
    if (!isUntried) await place.keep()
    await place.put()
  }
  if (!server) {
    if (restoresTo !== undefined) await restore(dataDirectory, restoresTo)
    place.settle()
    return console.log(`${place.path} is threadbox ${version} now. No server runs on ${dataDirectory}.`)
  }
  const wanted: Wanted = {
    ...{ server, dataDirectory, path: place.path, withinMs: replacement.readyWithinMs },
    // A server that was not ready before, as with a full disk, need not be ready afterwards.
    hasToBeReady: before?.isReady === true,
  }
  say('restarting the server')
  let pid: number
  let restored: string | undefined
  try {
    if (restoresTo !== undefined) {
      await stop(server)
      restored = await restore(dataDirectory, restoresTo)
      pid = start(server, place.path)
    } else pid = await restart(server, place.path)
  } catch (error) {
    await giveUp(place, {
      wanted,
      pid: server.pid,
      why: `could not be started: ${wordsOf(error)}`,
      schema,
      isBack,
      restored,
    })
    throw error
  }
  const failure = await findFailure({ ...wanted, pid })
  if (failure.why === undefined) {
    place.settle()
    return console.log(
      `threadbox ${version} is ready, ${Math.round(failure.tookMs)} ms after the restart. The former one is ${place.previous}.`,
    )
  }
  await giveUp(place, { wanted, pid, why: failure.why, schema, isBack, restored })
}

interface Failed {
  wanted: Wanted
  pid: number
  why: string
  schema: number | undefined
  isBack: boolean
  /** The path of the newer database that was replaced for the older executable. */
  restored: string | undefined
}

/**
 * Restores the state from before the upgrade, and throws. The new server has accepted nothing while it was not ready, so nothing
 * is lost.
 */
async function giveUp(place: ExecutablePlace, { wanted, pid, why, schema, isBack, restored }: Failed): Promise<never> {
  const { server, dataDirectory } = wanted
  const failed = [findServerProcess(dataDirectory), pid].find(each => each !== undefined && runsFrom(each, place.path))
  // This comes first, so that every later start of a server uses the old executable.
  await place.undo(isBack)
  if (failed !== undefined || server.isService) await stopFailed(server, failed)
  if (restored !== undefined) await unrestore(dataDirectory, restored)
  const now = readSchema(join(dataDirectory, 'threadbox.db'))
  if (schema !== undefined && now !== undefined && now > schema) await restore(dataDirectory, schema)
  const started = findServerProcess(dataDirectory) ?? start(server, place.path)
  const { why: another } = await findFailure({ ...wanted, pid: started })
  place.settle()
  const after = another === undefined ? 'It runs.' : `It is not ready either: ${another}`
  throw new Error(`upgrade: went back to the former executable, since the new one ${why}. ${after}`)
}
