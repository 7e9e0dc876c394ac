import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../../db/busy.ts'
import { insertStops } from '../../db/events.ts'
import { messageOf } from '../../errors.ts'
import type { Runtime } from '../runtime.ts'

/** Those whose last try has failed: it is tried each second, and to say so once is enough. */
const failing = new WeakSet<Database>()

/**
 * Stores an event for each sandbox that runs no more, whatever has stopped it. Never rejects: when it begins to fail, and
 * when that is over, is logged, and the next call stores what this one could not.
 */
export async function noteStops({ db, environments, log }: Runtime): Promise<void> {
  try {
    await environments.handStopped(stopped => writeWhenFree(db, () => insertStops(db, stopped)))
    if (failing.delete(db)) log('stops: events of sandboxes that have stopped are stored again', 'info')
  } catch (error) {
    if (!failing.has(db))
      log(`stops: events of sandboxes that have stopped cannot be stored: ${messageOf(error)}`, 'error')
    failing.add(db)
  }
}
