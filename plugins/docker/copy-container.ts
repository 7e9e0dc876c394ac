import { existsSync } from 'node:fs'
import { mkdir, open, statfs, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { SandboxCopy } from '../../src/plugin-api/index.ts'
import { objectOf, objectsOf, parseJson } from '../../src/read/json.ts'
import { readAddress, type Variables } from './address.ts'
import { containerName, ENVIRONMENT_VARIABLE } from './container.ts'
import { whileMarked } from './copy-mark.ts'
import { createEngine, type DockerEngine } from './engine.ts'
import { isConflict, isMissing } from './failure.ts'
import { GUEST_VOLUME } from './guest-volume.ts'
import { copyFiles, type KeptCopy, toVolumeFile } from './kept-copy.ts'
import { labels, parseCreatedWith } from './labels.ts'
import { readState } from './start.ts'

/** The label of an image that was made for a copy. It names the machine and the process that made it. */
const COPY_LABEL = 'threadbox.copy'
/** An engine copies some 100 MB in a second. */
const COPIED_WITHIN_MS = 3_600_000
const SPARE_BYTES = 256 * 1024 * 1024

/**
 * Copies a sandbox's container by its engine: its file system as an image, and the volumes that its image declares. The engine
 * pauses what runs inside meanwhile. Without volumes it does so by itself, and goes on also when this process is killed; with some
 * a killed copy leaves the container paused, which its next use ends.
 */
export async function copyContainer(
  dataDirectory: string,
  id: string,
  to: string,
  variables: Variables,
): Promise<SandboxCopy> {
  const engine = createEngine(() => readAddress(variables))
  const container = containerName(id)
  await removeDeadCopies(engine)
  const described = await describeContainer(engine, container)
  await assertRoom(to, described.bytes)
  await mkdir(to, { recursive: true, mode: 0o700 })
  const { imageId, frozenMs } = await whileMarked(dataDirectory, id, () =>
    freezeContainer(engine, container, described, {
      to,
      query: { changes: `LABEL ${COPY_LABEL}=${hostname()}:${process.pid}` },
    }),
  )
  try {
    await save(await engine.stream('GET', `/images/${imageId}/get`), join(to, 'image.tar'))
  } finally {
    await engine.call('DELETE', `/images/${imageId}`, { query: { force: 'true' } })
  }
  const { createdWith, env, volumes } = described
  await writeFile(join(to, 'container.json'), JSON.stringify({ createdWith, env, volumes } satisfies KeptCopy))
  const files = copyFiles(volumes.length).map(name => ({ name: `docker/${id}/${name}`, from: join(to, name) }))
  return { files, frozenMs }
}

/** A container, with the size of all of its files and of those that were written in it. */
export interface DescribedContainer extends KeptCopy {
  bytes: number
  writtenBytes: number
}

export async function describeContainer(engine: DockerEngine, container: string): Promise<DescribedContainer> {
  const answer = objectOf(await engine.call('GET', `/containers/${container}/json`, { query: { size: 'true' } }))
  const { Labels, Env } = objectOf(answer?.Config) ?? {}
  const createdWith = parseCreatedWith(objectOf(Labels)?.[labels.createdWith])
  if (!createdWith) throw new Error('its container has a damaged label')
  const variable = (Array.isArray(Env) ? Env : []).map(String).find(each => each.startsWith(`${ENVIRONMENT_VARIABLE}=`))
  const given = objectOf(parseJson(variable?.slice(ENVIRONMENT_VARIABLE.length + 1) ?? '')) ?? {}
  const env = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]))
  const volumes = objectsOf(answer?.Mounts).flatMap(({ Type, Name, Destination }) =>
    Type === 'volume' && Name !== GUEST_VOLUME ? [String(Destination)] : [],
  )
  return {
    createdWith,
    env,
    volumes,
    bytes: Number(answer?.SizeRootFs ?? 0),
    writtenBytes: Number(answer?.SizeRw ?? 0),
  }
}

/** Throws when the disk has no room for a copy of so many bytes. */
export async function assertRoom(to: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(join(to, '..'))
  const needed = bytes + SPARE_BYTES
  if (bavail * bsize < needed) throw new Error(`its copy needs ${Math.ceil(needed / 1_000_000)} MB of free disk`)
}

/** Says how a container becomes an image: the query and configuration of `POST /commit`, and the place for its volumes' files. */
export interface CommitOptions {
  to: string
  query: Readonly<Record<string, string>>
  config?: object
}

/** Makes an image of the container, and copies its volumes, while nothing in it runs. */
export async function freezeContainer(
  engine: DockerEngine,
  container: string,
  { volumes }: Pick<KeptCopy, 'volumes'>,
  { to, ...options }: CommitOptions,
): Promise<{ imageId: string; frozenMs: number }> {
  const isRunning = (await readState(engine, container)) === 'running'
  const pausesHere = isRunning && volumes.length > 0
  if (pausesHere) await engine.call('POST', `/containers/${container}/pause`)
  const begun = performance.now()
  try {
    const imageId = await commit(engine, container, options)
    for (const [index, volume] of volumes.entries()) {
      const query = { path: `${volume}/.` }
      await save(
        await engine.stream('GET', `/containers/${container}/archive`, { query }),
        join(to, toVolumeFile(index)),
      )
    }
    return { imageId, frozenMs: isRunning ? Math.ceil(performance.now() - begun) : 0 }
  } finally {
    if (pausesHere) await engine.call('POST', `/containers/${container}/unpause`)
  }
}

async function commit(
  engine: DockerEngine,
  container: string,
  { query, config = {} }: Omit<CommitOptions, 'to'>,
): Promise<string> {
  const answer = await engine.call('POST', '/commit', {
    query: { container, pause: 'true', ...query },
    body: config,
    timeoutMs: COPIED_WITHIN_MS,
  })
  const { Id } = objectOf(answer) ?? {}
  if (typeof Id !== 'string') throw new Error('the engine made an image without an id')
  return Id
}

/** Removes the images that killed backups of this machine have left. Those that containers were made from are restored ones. */
async function removeDeadCopies(engine: DockerEngine): Promise<void> {
  const filters = JSON.stringify({ label: [COPY_LABEL] })
  for (const { Id, Labels } of objectsOf(await engine.call('GET', '/images/json', { query: { filters } }))) {
    const [host, pid] = String(objectOf(Labels)?.[COPY_LABEL]).split(':')
    if (host !== hostname() || existsSync(`/proc/${pid}`)) continue
    // The engine keeps an image that containers were made from.
    await engine.call('DELETE', `/images/${Id}`).catch(error => {
      if (!isMissing(error) && !isConflict(error)) throw error
    })
  }
}

/** Writes a new file. */
export async function save(bytes: ReadableStream<Uint8Array>, path: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    for await (const piece of bytes) await file.writeFile(piece)
  } finally {
    await file.close()
  }
}
