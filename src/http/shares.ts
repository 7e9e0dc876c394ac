import { createHolds } from '../async/hold.ts'
import { ApiError } from '../errors.ts'

/** What each key may have open at once. */
export interface Shares {
  /** Counts one request, stream or WebSocket until it is disposed of. Throws rate_limit_exceeded above the limit. */
  open(key: string): Disposable
  /** Whether a connection may stay open for another request. */
  keeps(key: string, connection: string): boolean
}

export interface SharesOptions {
  /** Requests that one key may have open at once; 0: no limit. */
  requestsPerKey: number
  /** Connections that one key may keep open between requests. */
  connectionsPerKey: number
  /** After this time without a request a connection is closed by itself. */
  keptMs: number
}

export function createShares({ requestsPerKey, connectionsPerKey, keptMs }: SharesOptions): Shares {
  const holds = createHolds()
  /** When each connection was used last, the oldest first. */
  const kept = new Map<string, Map<string, number>>()

  function forgetOld(connections: Map<string, number>, now: number): void {
    for (const [connection, usedAt] of connections) {
      if (usedAt + keptMs > now) return
      connections.delete(connection)
    }
  }

  return {
    open(key) {
      if (requestsPerKey > 0 && holds.count(key) >= requestsPerKey) {
        const what = `This key has ${requestsPerKey} requests, streams and WebSockets open at once, and can have no more.`
        throw new ApiError('rate_limit_exceeded', what)
      }
      return holds.hold(key)
    },
    keeps(key, connection) {
      const now = performance.now()
      const connections = kept.get(key) ?? new Map<string, number>()
      kept.set(key, connections)
      connections.delete(connection)
      forgetOld(connections, now)
      if (connections.size >= connectionsPerKey) return false
      connections.set(connection, now)
      return true
    },
  }
}
