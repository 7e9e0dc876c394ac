import { stat } from 'node:fs/promises'
import { ApiError, noSpace } from '../../src/errors.ts'
import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { DiskState } from '../../src/plugin-api/index.ts'
import { findFailedImages } from './files/image-health.ts'
import { getEnvironmentPaths, type Host } from './host/layout.ts'

const MB = 1024 * 1024
const BLOCK_BYTES = 512
/** The reserve's divisor: a sandbox that has grown by this much since the disk became low is filling it. */
const GROWTH_PART = 16

/**
 * Ends jails before the file systems in their images meet a full disk, which their journals do not survive: below the reserve
 * the jails that grow, below half of it all jails. Returns a function that ends the watch.
 */
export function guardDisks(host: Host, environments: ReadonlyMap<string, KeptEnvironment>): () => Promise<void> {
  const { diskSpace, dataDirectory, log } = host
  /** Bytes of each image when the disk became low. */
  const sizes = new Map<string, number>()
  let work: Promise<unknown> | undefined

  const hasGrown = async (id: string, reserveMb: number): Promise<boolean> => {
    const bytes = await stat(getEnvironmentPaths(dataDirectory, id).image).then(
      ({ blocks }) => blocks * BLOCK_BYTES,
      () => 0,
    )
    const before = sizes.get(id) ?? bytes
    sizes.set(id, before)
    if (bytes - before < (reserveMb * MB) / GROWTH_PART) return false
    sizes.delete(id)
    return true
  }

  const haltIfFilling = async (environment: KeptEnvironment, state: DiskState) => {
    const isFilling = state.level === 'full' || (await hasGrown(environment.id, state.reserveMb))
    if (isFilling) await environment.halt(noSpace(state))
  }

  const react = async (state: DiskState) => {
    await Promise.all(
      [...environments.values()].map(each =>
        haltIfFilling(each, state).catch(error => log(`ending ${each.id}: ${error.message}`)),
      ),
    )
  }

  const unwatch = diskSpace?.watch(state => {
    if (state.level === 'enough') {
      sizes.clear()
      for (const environment of environments.values()) environment.recover()
    } else {
      work ??= react(state).finally(() => {
        work = undefined
      })
    }
  })

  return async () => {
    unwatch?.()
    await work
  }
}

/** Ends the jails whose image has an error; the next start repairs the image. */
export async function haltFailedDisks(host: Host, environments: ReadonlyMap<string, KeptEnvironment>): Promise<void> {
  const failed = host.isRoot ? await findFailedImages() : new Set<string>()
  if (failed.size === 0) return
  for (const environment of [...environments.values()]) {
    if (!failed.has(getEnvironmentPaths(host.dataDirectory, environment.id).image)) continue
    const reason = new ApiError('sandbox_unavailable', 'Its disk has met an error. The next use mends it.')
    await environment.halt(reason).catch(error => host.log(`ending ${environment.id}: ${error.message}`))
  }
}
