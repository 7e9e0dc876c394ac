import { once } from '../../src/async/once.ts'
import { ApiError, messageOf } from '../../src/errors.ts'
import { createGuestBackend, type GuestBackendOptions } from '../../src/guest/host/guest-backend.ts'
import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import { outletsOf } from '../../src/guest/host/outlets.ts'
import type { Backend, EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { readAddress, type Variables } from './address.ts'
import { adoptContainers } from './adopt.ts'
import { createEngineLimits } from './available-limits.ts'
import { containerName } from './container.ts'
import { createContainer, type Installation } from './create-container.ts'
import { createDataDirectoryId } from './data-directory-id.ts'
import { createEngine } from './engine.ts'
import { EngineLost, isConflict, unavailable } from './failure.ts'
import { createGuestVolume } from './guest-volume.ts'
import { createImages, findImage } from './image.ts'
import { type ContainerContext, keepContainer } from './keep-container.ts'
import { listCopies } from './kept-copy.ts'
import { probeEngine } from './probes.ts'
import { removeContainer } from './remove-container.ts'
import { createRestorer } from './restore-copy.ts'
import { isolationOf, pickRuntime } from './runtime.ts'
import { createDockerSnapshots, findDockerSnapshot } from './snapshots.ts'

export interface DockerOptions extends GuestBackendOptions {
  /** Image of environments that name none. */
  image: string
  /** The engine's runtimes that agents may name. Environments that name none get the first. The default is the engine's own runtime. */
  runtimes?: readonly string[]
  /** Variables that hold DOCKER_HOST and its like; default this process's own. */
  variables?: Variables
  /** How long a guest may be silent while a call waits for it, before it is given up. Default 15 seconds. */
  silentMs?: number
}

const DEFAULT_SILENT_MS = 15_000
/** An engine may go on for this long with a request of a server that was killed. */
const STRAYS_WITHIN_MS = 3_600_000

/**
 * Environments in long-lived containers of a Docker engine. The engine is not called before the first use.
 *
 * Over 100 lines: what the parts of one backend share is made here.
 */
export function createDockerBackend(options: DockerOptions): Backend {
  const { dataDirectory, executable = process.execPath, log } = options
  const { runtimes = [], variables = process.env, silentMs = DEFAULT_SILENT_MS } = options
  const outlets = (id: string) => outletsOf(options, id)
  const engine = createEngine(() => readAddress(variables))
  const dataDirectoryId = createDataDirectoryId(dataDirectory)
  const closing = new AbortController()
  const begunAt = performance.now()
  const images = createImages(engine, log, closing.signal)
  const engineLimits = createEngineLimits(engine, dataDirectory)
  const environments = new Map<string, KeptEnvironment>()
  /** The images that environments of this server were made from. */
  const imageIds = new WeakMap<KeptEnvironment, string>()
  /** Ids of containers that failed creates have left, to be removed when the engine answers again. */
  const leftovers = new Set<string>()
  const context: ContainerContext = { engine, dataDirectory, environments, silentMs, outletsOf: outlets, log }

  const install = once(async (): Promise<Installation> => {
    const dataId = await dataDirectoryId.make()
    return { dataId, guest: createGuestVolume({ engine, executable, dataId }) }
  })

  const create = async (spec: EnvironmentSpec, installation: Installation) => {
    const { id, limits, onProgress, snapshot } = spec
    try {
      const wanted = snapshot !== undefined && { dataId: installation.dataId, snapshotId: snapshot }
      const kept = wanted && (await findDockerSnapshot(engine, dataDirectory, wanted))
      const image = kept || (spec.image ?? options.image)
      const runtime = kept ? kept.runtime : pickRuntime(runtimes, spec)
      const dependencies = { ...installation, engine, images, engineLimits }
      const container = await createContainer(dependencies, id, {
        image,
        runtime,
        limits,
        outlets: outlets(id),
        onProgress,
      })
      const environment = keepContainer(context, installation, { id, ...container })
      imageIds.set(environment, container.imageId)
      return environment
    } catch (error) {
      if (isConflict(error)) throw new ApiError('conflict', 'The sandbox exists already.')
      await removeContainer(engine, containerName(id)).catch(() => leftovers.add(id))
      throw error
    }
  }

  const removeLeftovers = async () => {
    for (const id of [...leftovers]) {
      await removeContainer(engine, containerName(id)).then(
        () => leftovers.delete(id),
        error => onFailure(id, error),
      )
    }
  }

  /** An engine that is down is reported to those who use it; the next round tries again. */
  const onFailure = (id: string, error: unknown) => {
    if (!(error instanceof ApiError || error instanceof EngineLost)) log(`looking after ${id}: ${messageOf(error)}`)
  }

  const guests = createGuestBackend(options, {
    environments,
    prepare: () =>
      install()
        .then(installation => adoptContainers(context, installation))
        .catch(error => {
          throw unavailable('The Docker engine cannot be used', error)
        }),
    create: (spec, { installation }) => create(spec, installation),
    claim: async (environment, { image = options.image }) =>
      // The name may belong to another image by now.
      (await findImage(engine, image))?.id === imageIds.get(environment),
    toCreateError: error => unavailable('The sandbox could not be made', error),
    onFailure,
    async lookAfter() {
      await removeLeftovers()
      if (performance.now() - begunAt > STRAYS_WITHIN_MS) return
      await snapshots.removeStrays().catch(error => onFailure('snapshots', error))
    },
  })
  /** A server that never had a container needs no engine. */
  const mayHaveContainers = () => dataDirectoryId.find() !== undefined
  const prepared = () => guests.list().then(install)
  const snapshots = createDockerSnapshots(engine, dataDirectory, prepared)
  const restorer = createRestorer(context, engineLimits, prepared)

  return {
    name: 'docker',
    isolation: isolationOf(runtimes[0]),
    isolationOf: spec => isolationOf(pickRuntime(runtimes, spec)),
    egress: 'proxy',
    async check() {
      const dataId = await dataDirectoryId.makeIfOwn()
      const guest = createGuestVolume({ engine, executable, dataId })
      return await probeEngine({ engine, images, engineLimits, dataId, guest }, options.image, runtimes)
    },
    ...guests,
    snapshots,
    async open(id) {
      await restorer.restore(id)
      return mayHaveContainers() ? await guests.open(id) : undefined
    },
    async list() {
      const made = mayHaveContainers() ? await guests.list() : []
      return [...new Set([...made, ...listCopies(dataDirectory)])]
    },
    async close() {
      closing.abort()
      await restorer.settled()
      await guests.close()
    },
  }
}
