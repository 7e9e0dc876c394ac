import { networkOf } from '../../core/limits/network.ts'
import { isWithin, parseAddress, type Range } from '../../read/addresses.ts'
import { descriptors, openListeningSockets } from './listening-sockets.ts'

const LOOK_MS = 1000
/** With this many known connections, those that are closed are searched for and forgotten. */
const MANY_KNOWN = 10_000

/** Connections on which no key was sent yet, by address. */
export interface Strangers extends Disposable {
  /** Notes that a key was sent on this connection, so that it does not count any more. */
  know(address: string, port: number): void
}

export interface StrangersOptions {
  /** The port on which the server listens. */
  port: number
  /** How many such connections one address may have; 0 for any number. */
  most: number
  /** Addresses whose connections are not counted, because many callers come from there. */
  trusted: readonly Range[]
}

/**
 * Closes, within a second, the connections that one address has above `most`. Bun reports a connection only with its first
 * request, so the descriptors of this process are searched, but only when it has enough of them.
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
