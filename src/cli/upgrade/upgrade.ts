import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { version as ownVersion } from '../../../package.json'
import { readSchema } from '../../db/copy-schema.ts'
import { findCopy } from '../../db/earlier-copies.ts'
import { type Given, UsageError } from '../command-line.ts'
import { readPlace } from '../data-place.ts'
import { createProgress, type Progress } from '../progress.ts'
import { findServerProcess } from '../running-servers.ts'
import { bring } from './bring.ts'
import { type ExecutablePlace, findDigest, placeOf } from './executable-place.ts'
import { holdServers } from './hold.ts'
import { keepUpgrade } from './keep-upgrade.ts'
import { replace } from './replace.ts'
import { readServer, release, runsFrom, type ServerProcess } from './server-process.ts'
import { findSchemaFault, tryDoctor, tryVersion } from './try-executable.ts'

const READY_WITHIN_SECONDS = 60

/**
 * Replaces this executable by another one and restarts the server that runs from it. Goes back when that server is not ready in
 * time.
 */
export async function upgrade(given: Given): Promise<void> {
  if (!import.meta.dir.startsWith('/$bunfs/')) throw new Error('upgrade: run the built executable')
  const [source] = given.words
  if ((source !== undefined) === given.has('back')) throw new UsageError('upgrade: wants a FILE, a URL or --back')
  if (given.has('with-database') && !given.has('back')) throw new UsageError('--with-database: goes with --back')
  const readyWithinMs = readyWithinOf(given)
  const { dataDirectory } = (await readPlace(given)).config
  const place = placeOf(process.execPath)
  const lock = place.lock()
  if (!lock) throw new Error(`upgrade: another upgrade is at work on ${place.path}`)
  try {
    await upgradeAlone({ given, place, dataDirectory, readyWithinMs })
  } finally {
    lock.release()
  }
}

type Wanted = Pick<Work, 'given' | 'place' | 'dataDirectory' | 'readyWithinMs'>

async function upgradeAlone({ given, place, dataDirectory, readyWithinMs }: Wanted): Promise<void> {
  const pid = findServerProcess(dataDirectory)
  if (pid === 0) throw new Error(`upgrade: the server on ${dataDirectory} runs in a container: run this inside`)
  const server = pid === undefined ? undefined : readServer(pid)
  const held = server && holdServers(dataDirectory)
  try {
    if (server && !held) throw new Error(`--data-dir: another upgrade is at work on ${dataDirectory}`)
    if (server && server.executable !== place.path)
      throw new Error(
        `upgrade: the server on ${dataDirectory} runs from ${server.executable}: that one has to be upgraded`,
      )
    const progress = createProgress()
    try {
      await work({ given, place, server, dataDirectory, readyWithinMs, progress })
    } finally {
      progress.end()
    }
  } finally {
    held?.release()
    if (server) release(server)
  }
}

interface Work {
  given: Given
  place: ExecutablePlace
  server: ServerProcess | undefined
  dataDirectory: string
  readyWithinMs: number
  progress: Progress
}

async function work({ given, place, server, dataDirectory, readyWithinMs, progress }: Work): Promise<void> {
  const database = join(dataDirectory, 'threadbox.db')
  const sum = await findNext(given, place, progress)
  const here = await findDigest(place.path)
  const isUntried = place.begun?.next === here
  try {
    const version = await tryVersion(place.next, given.words[0] ?? place.previous)
    if (sum === here && !isUntried && (!server || runsFrom(server.pid, place.path)))
      return console.log(`${place.path} is this version already: ${version}`)
    progress.say(`trying ${version}`)
    const fault = await findSchemaFault(place.next, database)
    if (fault !== undefined && !given.has('with-database'))
      throw new Error(`${version} cannot work on the database: ${fault}${given.has('back') ? withDatabase : ''}`)
    const restoresTo = fault === undefined ? undefined : await findRestorable(place.next, database)
    if (server) await tryDoctor(place.next, server)
    const isBack = given.has('back')
    const detail = { from: ownVersion, to: version, sha256: sum, isBack }
    const keep = (outcome: string) => keepUpgrade(dataDirectory, { outcome, target: {}, detail })
    await keep('begun')
    await replace(place, {
      ...{ sum, version, server, dataDirectory, readyWithinMs, isUntried, isBack, restoresTo },
      isHere: sum === here,
      say: progress.say,
    }).catch(async error => {
      await keep('failed')
      throw error
    })
    await keep('done')
  } finally {
    if (existsSync(place.next)) place.dropNext()
  }
}

/** The schema of the newest copy of the database that an executable can work on. */
async function findRestorable(executable: string, database: string): Promise<number> {
  for (let schema = (readSchema(database) ?? 0) - 1; ; schema--) {
    const copy = findCopy(database, schema)
    if (!copy) throw new Error(`${database} has no copy beside it that the former executable can work on`)
    if ((await findSchemaFault(executable, copy.path)) === undefined) return copy.schema
    schema = copy.schema
  }
}

const withDatabase =
  '\n--with-database goes back to the copy from before the upgrade too; what was written since is kept beside it, and not in use.'

/** Brings the executable that will be put here. Returns its SHA-256. */
async function findNext(given: Given, place: ExecutablePlace, progress: Progress): Promise<string> {
  const [source] = given.words
  if (source !== undefined) {
    progress.say(`reading ${source}`)
    return await bring(source, place.next, given.find('sha256'))
  }
  // An upgrade that was killed may have kept the present executable as the previous one already.
  const left = await findDigest(place.next)
  if (left !== undefined && left === place.begun?.next) return left
  if (!existsSync(place.previous)) throw new Error(`upgrade: there is no ${place.previous} to go back to`)
  await place.recall()
  return (await findDigest(place.next)) ?? ''
}

function readyWithinOf(given: Given): number {
  const text = given.find('ready-within') ?? String(READY_WITHIN_SECONDS)
  const seconds = Number(text)
  if (!/^\d+$/.test(text) || seconds < 1 || seconds > 3600)
    throw new UsageError('--ready-within: must be seconds from 1 to 3600')
  return seconds * 1000
}
