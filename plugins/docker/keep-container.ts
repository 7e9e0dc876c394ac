import type { Duplex } from 'node:stream'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { type KeptEnvironment, keepEnvironment } from '../../src/guest/host/kept-environment.ts'
import { guestDirectoryInside } from './container.ts'
import type { Installation } from './create-container.ts'
import type { DockerEngine } from './engine.ts'
import { isMissing } from './failure.ts'
import type { CreatedWith } from './labels.ts'
import { createContainerLifecycle } from './lifecycle.ts'
import { watchLiveness } from './liveness.ts'

export interface ContainerContext {
  engine: DockerEngine
  environments: Map<string, KeptEnvironment>
  /** How long a guest may be silent while a call waits for it. */
  silentMs: number
  /** Takes what processes inside connect to the proxy. */
  onProxy(environmentId: string): (socket: Duplex) => void
  log(line: string): void
}

export interface ContainerToKeep {
  id: string
  imageId: string
  createdWith: CreatedWith
  connection?: GuestConnection
}

/** Adds an environment whose container exists to the backend's. */
export function keepContainer(
  { engine, environments, silentMs, onProxy, log }: ContainerContext,
  installation: Installation,
  { id, imageId, createdWith, connection }: ContainerToKeep,
): KeptEnvironment {
  const lifecycle = createContainerLifecycle({
    engine,
    id,
    createdWith,
    guestDirectory: guestDirectoryInside(installation.dataId),
    silentMs,
    // The image may be gone; then the guest that is in the volume has to do.
    installGuest: () =>
      installation.guest.install(imageId).catch(error => {
        if (!isMissing(error)) throw error
      }),
    onProxy: onProxy(id),
    log,
    onRemoved: () => void environments.delete(id),
  })
  if (connection) watchLiveness(connection, silentMs)
  const environment = keepEnvironment(lifecycle, connection)
  environments.set(id, environment)
  return environment
}
