import { networkOf } from '../../core/limits/network.ts'
import { isWithin, parseAddress, type Range } from '../../read/addresses.ts'
import { descriptors, openListeningSockets } from './listening-sockets.ts'

const LOOK_MS = 1000
/** So many known connections are looked through for those that are gone. */
const MANY_KNOWN = 10_000

/** Connections on which no key was shown yet, by address. */
export interface Strangers extends Disposable {
  /** A key was shown on the connection from there: it does not count any more. */
  know(address: string, port: number): void
}

export interface StrangersOptions {
  /** The one that the server listens on. */
  port: number
  /** So many of one address may stay; 0: any number. */
  most: number
  /** Addresses that are not counted: many callers come from there. */
  trusted: readonly Range[]
}

/**
 * Ends what one address has above `most`, within a second. Bun tells of a connection with its first request only, so the
 * descriptors of this process are looked through, when there are enough of them.
 */
export function limitStrangers({ port, most, trusted }: StrangersOptions): Strangers {
  if (most === 0) return { know() {}, [Symbol.dispose]() {} }
  const sockets = openListeningSockets()
  let known = new Set<string>()

  const look = () => {
    if (descriptors().length <= most && known.size < MANY_KNOWN) return
    const open = new Set<string>()
    const strangers = Map.groupBy(
      sockets.connections(port).filter(({ address, port }) => {
        const name = nameOf(address, port)
        if (known.has(name)) open.add(name)
        return !open.has(name) && !isTrusted(address, trusted)
      }),
      ({ address }) => networkOf(address),
    )
    known = open
    for (const connections of strangers.values()) connections.slice(most).forEach(sockets.shutDown)
  }
  const timer = setInterval(look, LOOK_MS)
  return {
    know: (address, port) => void known.add(nameOf(address.replace(/^::ffff:(?=\d+\.)/i, ''), port)),
    [Symbol.dispose]() {
      clearInterval(timer)
      sockets[Symbol.dispose]()
    },
  }
}

const nameOf = (address: string, port: number) => `${networkOf(address)} ${port}`

function isTrusted(address: string, trusted: readonly Range[]): boolean {
  const parsed = trusted.length > 0 ? parseAddress(address) : undefined
  return parsed !== undefined && trusted.some(range => isWithin(parsed, range))
}
