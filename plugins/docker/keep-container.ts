import { type KeptEnvironment, keepEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { Outlets } from '../../src/guest/host/outlets.ts'
import type { Installation } from './create-container.ts'
import type { DockerEngine } from './engine.ts'
import { isMissing } from './failure.ts'
import type { CreatedWith } from './labels.ts'
import { createContainerLifecycle } from './lifecycle.ts'
import type { JoinedGuest } from './redirect.ts'

export interface ContainerContext {
  engine: DockerEngine
  dataDirectory: string
  environments: Map<string, KeptEnvironment>
  /** How long a guest may be silent while a call waits for it. */
  silentMs: number
  outletsOf(environmentId: string): Outlets
  log(line: string): void
}

export interface ContainerToKeep {
  id: string
  imageId: string
  createdWith: CreatedWith
  /** When this is absent, the first use connects. */
  guest?: JoinedGuest
}

/** Adds an environment whose container exists to the backend's. */
export function keepContainer(
  { engine, dataDirectory, environments, silentMs, outletsOf, log }: ContainerContext,
  installation: Installation,
  { id, imageId, createdWith, guest }: ContainerToKeep,
): KeptEnvironment {
  const lifecycle = createContainerLifecycle({
    engine,
    dataDirectory,
    id,
    imageId,
    createdWith,
    dataId: installation.dataId,
    silentMs,
    // The image may be gone; then the guest that is in the volume has to do.
    installGuest: () =>
      installation.guest.install(imageId).catch(error => {
        if (!isMissing(error)) throw error
      }),
    outlets: outletsOf(id),
    log,
    onRemoved: () => void environments.delete(id),
  })
  const environment = keepEnvironment(lifecycle, guest && lifecycle.take(guest))
  environments.set(id, environment)
  return environment
}
