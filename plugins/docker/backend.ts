import type { Duplex } from 'node:stream'
import { ApiError, messageOf } from '../../src/errors.ts'
import { createGuestBackend, type GuestBackendOptions } from '../../src/guest/host/guest-backend.ts'
import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { Backend, EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { readAddress, type Variables } from './address.ts'
import { createEngineLimits } from './available-limits.ts'
import { containerName } from './container.ts'
import { listContainers } from './containers.ts'
import { createContainer, type Installation } from './create-container.ts'
import { createDataDirectoryId } from './data-directory-id.ts'
import { createEngine } from './engine.ts'
import { EngineLost, isConflict, unavailable } from './failure.ts'
import { createGuestVolume, removeFiller } from './guest-volume.ts'
import { createImages } from './image.ts'
import { type ContainerContext, keepContainer } from './keep-container.ts'
import { probeEngine } from './probes.ts'
import { removeContainer } from './start.ts'

export interface DockerOptions extends GuestBackendOptions {
  /** Image of environments that name none. */
  image: string
  /** Variables that hold DOCKER_HOST and its like; default this process's own. */
  variables?: Variables
  /** How long a guest may be silent while a call waits for it, before it is given up. Default 15 seconds. */
  silentMs?: number
}

const DEFAULT_SILENT_MS = 15_000

/** Environments in long-lived containers of a Docker engine. The engine is not called before the first use. */
export function createDockerBackend(options: DockerOptions): Backend {
  const { dataDirectory, executable = process.execPath, log } = options
  const { variables = process.env, silentMs = DEFAULT_SILENT_MS } = options
  const { serveProxy = (_id: string, socket: Duplex) => void socket.destroy() } = options
  const engine = createEngine(() => readAddress(variables))
  const dataDirectoryId = createDataDirectoryId(dataDirectory)
  const closing = new AbortController()
  const images = createImages(engine, log, closing.signal)
  const engineLimits = createEngineLimits(engine, dataDirectory)
  const environments = new Map<string, KeptEnvironment>()
  /** Ids of containers that failed creates have left, to be removed when the engine answers again. */
  const leftovers = new Set<string>()
  const onProxy = (id: string) => (socket: Duplex) => serveProxy(id, socket)
  const context: ContainerContext = { engine, environments, silentMs, onProxy, log }

  const adopt = async () => {
    const dataId = await dataDirectoryId.make()
    const installation: Installation = { dataId, guest: createGuestVolume({ engine, executable, dataId }) }
    await removeFiller(engine, dataId)
    const running: KeptEnvironment[] = []
    for (const { environmentId: id, imageId, isRunning, createdWith } of await listContainers(engine, dataId)) {
      if (!createdWith) log(`${id}: its container has a damaged label`)
      else {
        const environment = keepContainer(context, installation, { id, imageId, createdWith })
        if (isRunning) running.push(environment)
      }
    }
    return { installation, running }
  }

  const create = async ({ id, image = options.image, limits }: EnvironmentSpec, installation: Installation) => {
    try {
      const dependencies = { ...installation, engine, images, engineLimits }
      const container = await createContainer(dependencies, id, { image, limits, onProxy: onProxy(id) })
      return keepContainer(context, installation, { id, ...container })
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
      adopt().catch(error => {
        throw unavailable('The Docker engine cannot be used', error)
      }),
    create: (spec, { installation }) => create(spec, installation),
    toCreateError: error => unavailable('The sandbox could not be made', error),
    onFailure,
    lookAfter: removeLeftovers,
  })
  /** A server that never had a container needs no engine. */
  const mayHaveContainers = () => dataDirectoryId.find() !== undefined

  return {
    name: 'docker',
    isolation: 'container',
    egress: 'proxy',
    async check() {
      const dataId = await dataDirectoryId.makeIfOwn()
      const guest = createGuestVolume({ engine, executable, dataId })
      return await probeEngine({ engine, images, engineLimits, dataId, guest }, options.image)
    },
    ...guests,
    open: async id => (mayHaveContainers() ? await guests.open(id) : undefined),
    list: async () => (mayHaveContainers() ? await guests.list() : []),
    async close() {
      closing.abort()
      await guests.close()
    },
  }
}
