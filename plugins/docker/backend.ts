import type { Duplex } from 'node:stream'
import { once } from '../../src/async/once.ts'
import { ApiError, messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { startHousekeeping } from '../../src/guest/host/housekeeping.ts'
import { type KeptEnvironment, keepEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { Backend, EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { readAddress, type Variables } from './address.ts'
import { createEngineLimits } from './available-limits.ts'
import { containerName, guestDirectoryInside } from './container.ts'
import { listContainers } from './containers.ts'
import { createContainer, type Installation } from './create-container.ts'
import { createDataDirectoryId } from './data-directory-id.ts'
import { createEngine } from './engine.ts'
import { EngineLost, isConflict, isMissing, unavailable } from './failure.ts'
import { createGuestVolume, removeFiller } from './guest-volume.ts'
import { createImages } from './image.ts'
import type { CreatedWith } from './labels.ts'
import { createContainerLifecycle } from './lifecycle.ts'
import { watchLiveness } from './liveness.ts'
import { probeEngine } from './probes.ts'
import { removeContainer } from './start.ts'

export interface DockerOptions {
  dataDirectory: string
  /** Of environments that name none. */
  image: string
  /** Where DOCKER_HOST and its like are read from; default this process's own. */
  variables?: Variables
  /** Environments that are not used for this long are paused. Default one hour; 0 never pauses. */
  idleMs?: number
  /** A guest that does not answer for this long, where it is waited for, is given up. Default 15 seconds. */
  silentMs?: number
  /** The executable that is the guest inside; default this process's own. */
  executable?: string
  /** Takes a connection that a process inside made to the proxy; without it they are closed. */
  serveProxy?(environmentId: string, socket: Duplex): void
  log(line: string): void
}

const DEFAULT_IDLE_MS = 3_600_000
const DEFAULT_SILENT_MS = 15_000

/** Ids become names of containers. */
const isSafeId = (id: string) => /^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/.test(id)

/** Environments in long-lived containers of a Docker engine. Nothing is touched before the first call. */
export function createDockerBackend(options: DockerOptions): Backend {
  const { dataDirectory, idleMs = DEFAULT_IDLE_MS, executable = process.execPath, log } = options
  const { variables = process.env, silentMs = DEFAULT_SILENT_MS } = options
  const engine = createEngine(() => readAddress(variables))
  const dataDirectoryId = createDataDirectoryId(dataDirectory)
  const closing = new AbortController()
  const images = createImages(engine, log, closing.signal)
  const engineLimits = createEngineLimits(engine, dataDirectory)
  const environments = new Map<string, KeptEnvironment>()
  /** What a failed create has left, to be removed when the engine is back. */
  const leftovers = new Set<string>()
  const creating = new Map<string, Promise<KeptEnvironment>>()

  const onProxy = (id: string) => (socket: Duplex) =>
    options.serveProxy ? options.serveProxy(id, socket) : void socket.destroy()

  const keep = (
    installation: Installation,
    id: string,
    imageId: string,
    createdWith: CreatedWith,
    connection?: GuestConnection,
  ) => {
    const home = createContainerLifecycle({
      engine,
      id,
      createdWith,
      guestDirectory: guestDirectoryInside(installation.dataId),
      silentMs,
      // The image may be gone; then the guest that is there has to do.
      installGuest: () => installation.guest.install(imageId).catch(error => rethrowUnless(isMissing, error)),
      onProxy: onProxy(id),
      log,
      onRemoved: () => void environments.delete(id),
    })
    if (connection) watchLiveness(connection, silentMs)
    const environment = keepEnvironment(home, connection)
    environments.set(id, environment)
    return environment
  }

  const prepare = once(async () => {
    const dataId = await dataDirectoryId.make()
    const installation: Installation = { dataId, guest: createGuestVolume({ engine, executable, dataId }) }
    await removeFiller(engine, dataId)
    const running: KeptEnvironment[] = []
    for (const { environmentId, imageId, isRunning, createdWith } of await listContainers(engine, dataId)) {
      if (!createdWith) log(`${environmentId}: its container has a damaged label`)
      else {
        const environment = keep(installation, environmentId, imageId, createdWith)
        if (isRunning) running.push(environment)
      }
    }
    const endHousekeeping = startHousekeeping({
      environments: () => environments.values(),
      idleMs,
      onFailure,
      also: removeLeftovers,
    })
    return { ...installation, endHousekeeping, rejoined: rejoin(running) }
  })
  let prepared: ReturnType<typeof prepare> | undefined
  const ready = async () => {
    prepared = prepare()
    return await prepared.catch(error => {
      throw unavailable('The Docker engine cannot be used', error)
    })
  }

  /** One after the other, beside the first uses; a guest that does not answer is left to its environment's next use. */
  const rejoin = async (running: readonly KeptEnvironment[]) => {
    for (const environment of running) {
      if (!closing.signal.aborted)
        await environment.rejoin().catch(error => log(`${environment.id}: ${messageOf(error)}`))
    }
  }

  const make = async (spec: EnvironmentSpec): Promise<KeptEnvironment> => {
    const installation = await ready()
    if (environments.has(spec.id)) throw new ApiError('conflict', 'The sandbox exists already.')
    const { id, image = options.image, limits } = spec
    try {
      const dependencies = { ...installation, engine, images, engineLimits }
      const container = await createContainer(dependencies, id, { image, limits, onProxy: onProxy(id) })
      return keep(installation, id, container.imageId, container.createdWith, container.connection)
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

  /** That the engine is down is told to who needs it; the next round looks again. */
  const onFailure = (id: string, error: unknown) => {
    if (!(error instanceof ApiError || error instanceof EngineLost)) log(`looking after ${id}: ${messageOf(error)}`)
  }

  return {
    name: 'docker',
    isolation: 'container',
    egress: 'proxy',
    async check() {
      const dataId = await dataDirectoryId.makeIfOwn()
      const guest = createGuestVolume({ engine, executable, dataId })
      return await probeEngine({ engine, images, engineLimits, dataId, guest }, options.image)
    },

    async create(spec) {
      if (!isSafeId(spec.id)) throw new Error('the environment id is not safe as a container name')
      if (creating.has(spec.id)) throw new ApiError('conflict', 'The sandbox exists already.')
      const making = make(spec).catch(error => {
        throw unavailable('The sandbox could not be made', error)
      })
      creating.set(spec.id, making)
      return making.finally(() => creating.delete(spec.id))
    },

    async open(id) {
      if (dataDirectoryId.find() === undefined) return undefined
      await ready()
      const environment = environments.get(id)
      return environment?.isDestroyed ? undefined : environment
    },

    troubleOf: id => environments.get(id)?.trouble,

    async list() {
      // A server that never had a container needs no engine.
      if (dataDirectoryId.find() === undefined) return []
      await ready()
      return [...environments.values()].filter(environment => !environment.isDestroyed).map(({ id }) => id)
    },

    async close() {
      closing.abort()
      await Promise.allSettled(creating.values())
      const parts = await prepared?.catch(() => undefined)
      await Promise.all([parts?.endHousekeeping(), parts?.rejoined])
      await Promise.all([...environments.values()].map(environment => environment.release()))
    },
  }
}

function rethrowUnless(isFine: (error: unknown) => boolean, error: unknown): void {
  if (!isFine(error)) throw error
}
