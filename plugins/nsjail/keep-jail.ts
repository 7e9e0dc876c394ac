import { runCommand } from '../../src/environment/run-command.ts'
import { type KeptEnvironment, keepEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { Environment } from '../../src/plugin-api/index.ts'
import type { AvailableLimits } from './checks/available-limits.ts'
import type { BackendContext } from './context.ts'
import type { EnvironmentPaths } from './host/layout.ts'
import type { EnvironmentRecord } from './host/record.ts'
import { createJailLifecycle } from './lifecycle.ts'
import { joinJail, type StartedJail, startJail } from './start.ts'

const SYNC_WITHIN_MS = 60_000

export interface JailToKeep {
  paths: EnvironmentPaths
  record: EnvironmentRecord
  limits: AvailableLimits
  started?: StartedJail
}

/** Adds an environment that exists to the backend's. */
export function keepJail(context: BackendContext, { paths, record, limits, started }: JailToKeep): KeptEnvironment {
  const { host, installed, disks, environments, userIdRanges } = context
  const jail = { host, installed, disks, paths, record, outlets: context.outletsOf(paths.id) }
  const lifecycle = createJailLifecycle({
    context,
    paths,
    record,
    limited: limits.controllers,
    ...(started?.onlyProxy !== undefined && { onlyProxy: started.onlyProxy }),
    join: nsjail => joinJail(jail, nsjail),
    start: () => context.queue(() => startJail(jail)),
    onRemoved({ rest }) {
      environments.delete(paths.id)
      const { userIdRange } = record
      if (userIdRange !== undefined) void rest.then(() => userIdRanges.release(userIdRange))
    },
  })
  const kept = keepEnvironment(lifecycle, started?.connection)
  // Without an image its files are the host's: a sync would wait for everything that anyone writes there.
  const environment = record.hasImage ? Object.assign(kept, { sync: () => syncInside(kept) }) : kept
  environments.set(paths.id, environment)
  return environment
}

/** Writes the environment's files to its disk, which holds nothing else. */
async function syncInside(environment: Environment): Promise<void> {
  await runCommand(environment, { command: ['sync', '-f', '/'], timeoutMs: SYNC_WITHIN_MS })
}
