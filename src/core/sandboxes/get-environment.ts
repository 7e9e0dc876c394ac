import { writeWhenFree } from '../../db/busy.ts'
import { beginEnvironment } from '../../db/environments.ts'
import { newId } from '../../db/id.ts'
import type { Environment, EnvironmentSpec } from '../../plugin-api/index.ts'
import type { Runtime } from '../runtime.ts'
import { abandonEnvironment, noteGone } from './abandon-environment.ts'

/** Takes a spare, or makes an environment. A sweep may erase it until it has a sandbox. Throws disk_full. */
export async function getEnvironment(
  runtime: Runtime,
  spec: Omit<EnvironmentSpec, 'id' | 'onProgress'> & { backend: string },
  onProgress: EnvironmentSpec['onProgress'],
): Promise<{ environment: Environment; isSpare: boolean }> {
  const { db, environments, spares, diskSpace } = runtime
  using _held = spares.hold()
  const [room, taken] = await Promise.allSettled([
    diskSpace.assertEnough(),
    spec.snapshot === undefined ? spares.take(spec) : undefined,
  ])
  const spare = taken.status === 'fulfilled' ? taken.value : undefined
  if (room.status === 'rejected') {
    if (spare) await abandonEnvironment(runtime, { backend: spec.backend, environmentId: spare.id })
    throw room.reason
  }
  if (spare) {
    spares.wasAsked(spec)
    return { environment: spare, isSpare: true }
  }
  const place = { backend: spec.backend, environmentId: newId('env') }
  await writeWhenFree(db, () => beginEnvironment(db, place))
  const wanted = { ...spec, id: place.environmentId, ...(onProgress && { onProgress }) }
  const environment = await environments.create(wanted).catch(async error => {
    await noteGone(runtime, place.environmentId)
    throw error
  })
  // A spare made from a snapshot would fit sandboxes of that snapshot only.
  if (spec.snapshot === undefined) spares.wasAsked(spec)
  return { environment, isSpare: false }
}
