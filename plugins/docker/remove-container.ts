import type { DockerEngine } from './engine.ts'
import { isConflict, isMissing } from './failure.ts'

const GONE_WITHIN_MS = 60_000
const POLL_MS = 50

/** Removes a container and its volumes. Resolves when the engine does not know it any more. */
export async function removeContainer(engine: DockerEngine, container: string): Promise<void> {
  for (const startedAt = performance.now(); ; await Bun.sleep(POLL_MS)) {
    try {
      await engine.call('DELETE', `/containers/${container}`, { query: { force: 'true', v: 'true' } })
    } catch (error) {
      if (isMissing(error)) return
      // Another call is removing it.
      if (!isConflict(error) || performance.now() - startedAt > GONE_WITHIN_MS) throw error
    }
  }
}
