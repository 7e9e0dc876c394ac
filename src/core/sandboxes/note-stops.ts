import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../../db/busy.ts'
import { insertStops } from '../../db/events.ts'
import { messageOf } from '../../errors.ts'
import type { Runtime } from '../runtime.ts'

/** Databases whose last try has failed: tries come every second, and one line in the log is enough. */
const failing = new WeakSet<Database>()

/**
 * Stores an event for each sandbox that has stopped, whatever the reason. Never rejects: the first failure and the recovery are
 * logged, and the next call stores what this one could not.
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
