import type { Duplex } from 'node:stream'
import { ApiError, messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { executableInside } from '../../src/guest/host/install.ts'
import type { GuestHome } from '../../src/guest/host/kept-environment.ts'
import { objectOf } from '../../src/read/json.ts'
import { describeConfinement } from './confinement.ts'
import { containerName } from './container.ts'
import type { DockerEngine } from './engine.ts'
import { EngineLost, unavailable } from './failure.ts'
import type { CreatedWith } from './labels.ts'
import { watchLiveness } from './liveness.ts'
import { joinContainer, readState, removeContainer, startContainer, stopContainer } from './start.ts'

export interface ContainerLifecycleOptions {
  engine: DockerEngine
  id: string
  createdWith: CreatedWith
  /** Takes what processes inside connect to the proxy. */
  onProxy(socket: Duplex): void
  log(line: string): void
  guestDirectory: string
  /** A guest that is silent for this long is given up. */
  silentMs: number
  /** Makes sure that the guest of this build is in its volume. */
  installGuest(): Promise<void>
  onRemoved(): void
}

const MIB = 1024 * 1024

/** Starts, reaches, stops and removes a container, for the environment that is in it. */
export function createContainerLifecycle(options: ContainerLifecycleOptions): GuestHome {
  const { engine, id, createdWith, guestDirectory, silentMs, onProxy, log } = options
  const container = containerName(id)
  const { diskMb } = createdWith.limits

  const guestContainer = { engine, container, guestDirectory, onProxy }
  const join = () => joinContainer(guestContainer, silentMs)

  const withLiveness = (connection: GuestConnection) => {
    watchLiveness(connection, silentMs)
    return connection
  }

  /** Connects to the guest of the running container, or starts the container again. */
  const reach = async (): Promise<GuestConnection> => {
    const state = await readState(engine, container)
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

  return {
    id,
    executable: executableInside(guestDirectory),
    log,
    describe: () => describeConfinement(createdWith),
    attach: () => reach().then(withLiveness, rethrow('The sandbox cannot be reached')),
    async rejoin() {
      if ((await readState(engine, container)) !== 'running') return undefined
      await options.installGuest()
      return withLiveness(await join())
    },
    isRunning: async () => (await readState(engine, container)) === 'running',
    stop: () => stopContainer(engine, container),
    remove: () => removeContainer(engine, container).then(options.onRemoved, rethrow('The sandbox cannot be deleted')),
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
