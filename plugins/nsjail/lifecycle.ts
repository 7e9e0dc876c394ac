import { messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { executableInside } from '../../src/guest/host/install.ts'
import type { GuestHome } from '../../src/guest/host/kept-environment.ts'
import { describeConfinement } from './confinement.ts'
import type { BackendContext } from './context.ts'
import type { EnvironmentPaths } from './host/layout.ts'
import type { EnvironmentRecord } from './host/record.ts'
import { runProgram } from './host/run-program.ts'
import type { Controller } from './jail/cgroup.ts'
import { GUEST_INSIDE } from './jail/config.ts'
import { findJail, killJail } from './jail/jail.ts'
import { readUsage } from './jail/usage.ts'
import { removeEnvironment, stopJail } from './remove.ts'
import type { StartedJail } from './start.ts'

export interface JailLifecycleOptions {
  context: Pick<BackendContext, 'host' | 'disks' | 'removals'>
  paths: EnvironmentPaths
  record: EnvironmentRecord
  /** Controllers that cgroups limit here; replaced by those of the next start. */
  limited: Controller[]
  /** The values from the jail's start. */
  onlyProxy?: string
  /** Connects to its running jail, by the pid of nsjail. */
  join(nsjail: number): Promise<StartedJail>
  start(): Promise<StartedJail>
  /** Resolves when its processes are gone; `rest` resolves when all of it is gone. */
  onRemoved(removal: { rest: Promise<void> }): void
}

/** Starts, reaches, stops and removes the jail of an environment. */
export function createJailLifecycle(options: JailLifecycleOptions): GuestHome {
  const { context, paths, record } = options
  const { host } = context
  const { diskMb } = record.limits
  let { limited, onlyProxy } = options

  const connectionOf = (jail: StartedJail): GuestConnection => {
    limited = jail.limited
    onlyProxy = jail.onlyProxy
    return jail.connection
  }

  return {
    id: paths.id,
    executable: executableInside(GUEST_INSIDE),
    log: host.log,
    describe: () => describeConfinement(host, record, { limited, onlyProxy }),
    async attach() {
      const running = await findJail(paths)
      if (running !== undefined) {
        try {
          return connectionOf(await options.join(running))
        } catch (error) {
          host.log(`${paths.id}: its jail is ended and started anew, what ran in it is gone: ${messageOf(error)}`)
          await killJail(paths)
        }
      }
      return connectionOf(await options.start())
    },
    async rejoin() {
      const running = await findJail(paths)
      return running === undefined ? undefined : connectionOf(await options.join(running))
    },
    isRunning: async () => (await findJail(paths)) !== undefined,
    limits: record.limits,
    usage: () => readUsage(paths, record.hasImage),
    stop: () => stopJail(context, paths),
    async remove() {
      options.onRemoved(await removeEnvironment(context, paths))
    },
    ...(!record.hasImage &&
      diskMb !== undefined && {
        disk: { limitMb: diskMb, usedMb: () => usedMb(paths.diskDirectory) },
      }),
  }
}

/** du fails when files vanish while it counts, and prints the sum nevertheless. */
const diskUsage = 'nice -n 19 du -skx -- "$1" 2>/dev/null; true'

/** Counts the MiB that a directory's files take on the disk. Unreadable files are not counted. */
async function usedMb(directory: string): Promise<number> {
  const output = await runProgram(['sh', '-c', diskUsage, 'sh', directory])
  return Math.ceil(Number.parseInt(output, 10) / 1024) || 0
}
