import { ApiError, messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { executableInside } from '../../src/guest/host/install.ts'
import type { GuestHome } from '../../src/guest/host/kept-environment.ts'
import type { Outlets } from '../../src/guest/host/outlets.ts'
import { objectOf } from '../../src/read/json.ts'
import { describeConfinement } from './confinement.ts'
import { containerName, guestDirectoryInside, redirectorName } from './container.ts'
import { findCopying, removeMark } from './copy-mark.ts'
import type { DockerEngine } from './engine.ts'
import { EngineLost, isMissing, unavailable } from './failure.ts'
import type { CreatedWith } from './labels.ts'
import { watchLiveness } from './liveness.ts'
import type { JoinedGuest } from './redirect.ts'
import { removeContainer } from './remove-container.ts'
import { isolationOf } from './runtime.ts'
import { joinContainer, readState, startContainer, stopContainer } from './start.ts'
import { createUsageReader } from './usage.ts'

export interface ContainerLifecycleOptions {
  engine: DockerEngine
  dataDirectory: string
  id: string
  imageId: string
  createdWith: CreatedWith
  outlets: Outlets
  log(line: string): void
  dataId: string
  /** A guest that is silent for this long is given up. */
  silentMs: number
  /** Makes sure that the guest of this build is in its volume. */
  installGuest(): Promise<void>
  onRemoved(): void
}

const MIB = 1024 * 1024
const POLL_MS = 100

/** Starts, reaches, stops and removes a container, for the environment that is in it. */
export function createContainerLifecycle(
  options: ContainerLifecycleOptions,
): GuestHome & { take(guest: JoinedGuest): GuestConnection } {
  const { engine, dataDirectory, id, imageId, createdWith, dataId, silentMs, outlets, log } = options
  const container = containerName(id)
  const { diskMb } = createdWith.limits

  const { runtime } = createdWith
  const guestContainer = { engine, container, imageId, dataId, runtime, outlets }
  const join = () => joinContainer(guestContainer, silentMs)

  let onlyProxy: string | undefined

  const take = (guest: JoinedGuest) => {
    const { connection } = guest
    onlyProxy = guest.onlyProxy
    watchLiveness(connection, silentMs, () => findCopying(dataDirectory, id) === 'now')
    return connection
  }

  /** Connects to the guest of the running container, or starts the container again. */
  const reach = async (): Promise<JoinedGuest> => {
    const state = await readThawed()
    if (state === 'missing') throw new ApiError('sandbox_unavailable', 'The container of the sandbox is gone.')
    await options.installGuest()
    if (state === 'running') {
      try {
        return await join()
      } catch (error) {
        if (error instanceof EngineLost) throw error
        log(`${id}: its container is stopped and started anew, what ran in it is gone: ${messageOf(error)}`)
      }
    }
    if (state !== 'stopped') await stopContainer(engine, container)
    return await startContainer(guestContainer)
  }

  /** Waits while a backup has paused the container. A container that a killed backup has left paused is resumed. */
  const readThawed = async () => {
    const copying = findCopying(dataDirectory, id)
    while (findCopying(dataDirectory, id) === 'now') await Bun.sleep(POLL_MS)
    const state = await readState(engine, container)
    if (copying === undefined) return state
    await removeMark(dataDirectory, id)
    if (state !== 'paused') return state
    await engine.call('POST', `/containers/${container}/unpause`)
    return await readState(engine, container)
  }

  const remove = async () => {
    await removeContainer(engine, container)
    // The redirector ends by itself, unless a server was killed before it began.
    await removeContainer(engine, redirectorName(container))
    if (createdWith.hasOwnImage) {
      await engine.call('DELETE', `/images/${imageId}`).catch(error => {
        if (!isMissing(error)) log(`${id}: its image ${imageId} is left on the engine: ${messageOf(error)}`)
      })
    }
  }

  return {
    id,
    take,
    executable: executableInside(guestDirectoryInside(dataId)),
    log,
    isolation: isolationOf(createdWith.runtime),
    describe: () => describeConfinement(createdWith, onlyProxy),
    attach: () => reach().then(take, rethrow('The sandbox cannot be reached')),
    async rejoin() {
      if ((await readState(engine, container)) !== 'running') return undefined
      await options.installGuest()
      return take(await join())
    },
    isRunning: async () => (await readState(engine, container)) === 'running',
    limits: createdWith.limits,
    usage: createUsageReader(engine, container),
    stop: () => stopContainer(engine, container),
    remove: () => remove().then(options.onRemoved, rethrow('The sandbox cannot be deleted')),
    ...(!createdWith.hasQuota &&
      diskMb !== undefined && {
        disk: { limitMb: diskMb, usedMb: () => usedMb(engine, container) },
      }),
  }
}

const rethrow = (what: string) => (error: unknown) => {
  throw unavailable(what, error)
}

/** MiB that the container's files take beyond its image's. */
async function usedMb(engine: DockerEngine, container: string): Promise<number> {
  const answer = await engine.call('GET', `/containers/${container}/json`, { query: { size: 'true' } })
  return Math.ceil(Number(objectOf(answer)?.SizeRw ?? 0) / MIB)
}
