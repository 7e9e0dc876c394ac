import { createHolds } from '../../../src/async/hold.ts'
import { createLock } from '../../../src/async/lock.ts'

/** Records which environments use which snapshots. */
export interface SnapshotHolds {
  /** Keeps snapshots from being removed until the result is disposed of. Waits for a removal that has begun. */
  hold(ids: readonly string[]): Promise<Disposable>
  /** Runs `remove` while nobody can begin to hold the snapshot. Undefined when somebody holds it. */
  unlessHeld<T>(id: string, remove: () => Promise<T>): Promise<T | undefined>
}

export function createSnapshotHolds(): SnapshotHolds {
  const holds = createHolds()
  const inTurn = createLock()
  return {
    hold: ids =>
      inTurn(async () => {
        const all = new DisposableStack()
        for (const id of ids) all.use(holds.hold(id))
        return all
      }),
    unlessHeld: (id, remove) => inTurn(async () => (holds.has(id) ? undefined : await remove())),
  }
}
