import { messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { executableInside } from '../../src/guest/host/install.ts'
import type { GuestHome } from '../../src/guest/host/kept-environment.ts'
import { describeConfinement } from './confinement.ts'
import type { Ground, Place } from './host/layout.ts'
import type { Meta } from './host/record.ts'
import { run } from './host/run-program.ts'
import type { Controller } from './jail/cgroup.ts'
import { GUEST_INSIDE } from './jail/config.ts'
import { findJail, killJail } from './jail/jail.ts'
import { removeEnvironment, stopJail } from './remove.ts'
import type { StartedJail } from './start.ts'

export interface JailHomeParts {
  ground: Ground
  place: Place
  meta: Meta
  /** What cgroups limit here, until a start has told. */
  limited: Controller[]
  /** Connects to its jail, which runs as this process. */
  join(nsjail: number): Promise<StartedJail>
  /** Starts its jail; none runs. */
  start(): Promise<StartedJail>
  /** Called when it is gone. */
  onRemoved(): void
}

/** A jail as the home of its guest. */
export function createJailHome(parts: JailHomeParts): GuestHome {
  const { ground, place, meta } = parts
  const { diskMb } = meta.limits
  let { limited } = parts

  const connectionOf = (jail: StartedJail): GuestConnection => {
    limited = jail.limited
    return jail.connection
  }

  return {
    id: place.id,
    executable: executableInside(GUEST_INSIDE),
    log: ground.log,
    describe: () => describeConfinement(ground, meta, limited),
    async attach() {
      const running = await findJail(place)
      if (running !== undefined) {
        try {
          return connectionOf(await parts.join(running))
        } catch (error) {
          ground.log(`${place.id}: its jail is ended and started anew, what ran in it is gone: ${messageOf(error)}`)
          await killJail(place)
        }
      }
      return connectionOf(await parts.start())
    },
    async rejoin() {
      const running = await findJail(place)
      return running === undefined ? undefined : connectionOf(await parts.join(running))
    },
    isRunning: async () => (await findJail(place)) !== undefined,
    stop: () => stopJail(ground, place),
    async remove() {
      await removeEnvironment(ground, place)
      parts.onRemoved()
    },
    ...(!meta.image &&
      diskMb !== undefined && {
        disk: { limitMb: diskMb, usedMb: () => usedMb(place.box) },
      }),
  }
}

/** du answers also when files vanish under it, which makes it fail. */
const diskUsage = 'nice -n 19 du -skx -- "$1" 2>/dev/null; true'

/** MiB that a directory's files take on the disk. What cannot be read is not counted. */
async function usedMb(directory: string): Promise<number> {
  const output = await run(['sh', '-c', diskUsage, 'sh', directory])
  return Math.ceil(Number.parseInt(output, 10) / 1024) || 0
}
