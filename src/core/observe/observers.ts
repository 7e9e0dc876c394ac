import { messageOf } from '../../errors.ts'
import type { Observation, Observe } from '../../model/observation.ts'

/** Hands each event of this process to the metrics, the traces and the audit log. */
export interface Observers {
  observe: Observe
  /**
   * Calls the listener with each observation, at once. An error of the listener is logged. The listener must not wait for
   * anything.
   */
  subscribe(listener: (observation: Observation) => void): Disposable
}

export function createObservers(log: (line: string, level: 'error') => void): Observers {
  const listeners = new Set<(observation: Observation) => void>()
  return {
    observe(fact) {
      if (listeners.size === 0) return
      const observation = { ...fact, time: new Date().toISOString() }
      for (const listener of listeners) {
        try {
          listener(observation)
        } catch (error) {
          log(`an observer of ${fact.type}: ${messageOf(error)}`, 'error')
        }
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
}
