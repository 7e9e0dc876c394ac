import type { Duplex } from 'node:stream'
import { ApiError, messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { executableInside } from '../../src/guest/host/install.ts'
import type { GuestHome } from '../../src/guest/host/kept-environment.ts'
import { objectOf } from '../../src/read/json.ts'
import { describeConfinement } from './confinement.ts'
import { nameOf } from './container.ts'
import type { DockerEngine } from './engine.ts'
import { EngineLost, unavailable } from './failure.ts'
import type { Made } from './labels.ts'
import { watchPulse } from './liveness.ts'
import { joinContainer, removeContainer, startContainer, stateOf, stopContainer } from './start.ts'

export interface ContainerHomeParts {
  engine: DockerEngine
  id: string
  made: Made
  /** Takes what processes inside connect to the proxy. */
  onProxy(socket: Duplex): void
  log(line: string): void
  /** Where the guest is inside. */
  guestDirectory: string
  /** One that is silent for this long is given up. */
  silentMs: number
  /** Makes sure that it is there, and of this build. */
  bringGuest(): Promise<void>
  /** Called when it is gone. */
  onRemoved(): void
}

const MIB = 1024 * 1024

/** A container as the home of its guest. */
export function createContainerHome(parts: ContainerHomeParts): GuestHome {
  const { engine, id, made, guestDirectory, silentMs, onProxy, log } = parts
  const container = nameOf(id)
  const { diskMb } = made.limits

  const join = () => joinContainer(engine, container, guestDirectory, onProxy, silentMs)

  const watched = (connection: GuestConnection) => {
    watchPulse(connection, silentMs)
    return connection
  }

  /** The running container's guest, else that of the container started again. */
  const reach = async (): Promise<GuestConnection> => {
    const state = await stateOf(engine, container)
    if (state === 'missing') throw new ApiError('sandbox_unavailable', 'The container of the sandbox is gone.')
    await parts.bringGuest()
    if (state === 'running') {
      try {
        return await join()
      } catch (error) {
        if (error instanceof EngineLost) throw error
        log(`${id}: its container is stopped and started anew, what ran in it is gone: ${messageOf(error)}`)
      }
    }
    if (state !== 'stopped') await stopContainer(engine, container)
    return await startContainer(engine, container, guestDirectory, onProxy)
  }

  return {
    id,
    executable: executableInside(guestDirectory),
    log,
    describe: () => describeConfinement(made),
    attach: () => reach().then(watched, rethrow('The sandbox cannot be reached')),
    async rejoin() {
      if ((await stateOf(engine, container)) !== 'running') return undefined
      await parts.bringGuest()
      return watched(await join())
    },
    isRunning: async () => (await stateOf(engine, container)) === 'running',
    stop: () => stopContainer(engine, container),
    remove: () => removeContainer(engine, container).then(parts.onRemoved, rethrow('The sandbox cannot be deleted')),
    ...(!made.hasQuota &&
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
