import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import { listContainers } from './containers.ts'
import type { Installation } from './create-container.ts'
import { removeFiller } from './guest-volume.ts'
import { type ContainerContext, keepContainer } from './keep-container.ts'

/** Finds this data directory's containers on its engine. Resolves to those that run. */
export async function adoptContainers(
  context: ContainerContext,
  installation: Installation,
): Promise<{ installation: Installation; running: KeptEnvironment[] }> {
  const { engine, log } = context
  await removeFiller(engine, installation.dataId)
  const running: KeptEnvironment[] = []
  for (const found of await listContainers(engine, installation.dataId)) {
    const { environmentId: id, imageId, isRunning, createdWith } = found
    if (!createdWith) log(`${id}: its container has a damaged label`)
    else {
      const environment = keepContainer(context, installation, { id, imageId, createdWith })
      if (isRunning) running.push(environment)
    }
  }
  return { installation, running }
}
