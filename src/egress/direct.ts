import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ByteSource, createByteSource } from '../http1/byte-source.ts'
import { HttpError } from '../http1/http-error.ts'
import { passAhead, type TunnelEnd, tunnel } from '../http1/tunnel.ts'
import { parseAddress } from '../read/addresses.ts'
import { isPoolAddress, type NamePool } from './names/pool.ts'
import type { Target } from './policy.ts'
import { finish } from './proxy.ts'

/** The address to which a program inside wanted to connect. */
export interface Destination {
  /** An IP address as text. */
  address: string
  port: number
}

/**
 * Finds the target that a program meant by an address: the name that it stands for, or the address itself. Throws an HttpError
 * for an address that was never given out for a name, or that is forgotten.
 */
export function targetOf({ address: text, port }: Destination, names: NamePool): Target {
  const address = parseAddress(text)
  if (!address || port < 1 || port > 65_535) throw new HttpError(400, 'this is not an address with a port')
  if (!isPoolAddress(address)) return { name: text, port, address }
  const name = names.nameOf(address)
  if (name === undefined) throw new HttpError(403, 'the address stands for no name: look the name up again')
  return { name, port }
}

export interface DirectParts {
  /** Opens a connection to the target. Throws an HttpError. */
  dial(signal: AbortSignal): Promise<Socket>
  /** Does what `carry` in the proxy's parts does. */
  carry?(upstream: Socket): Promise<void> | undefined
  sourceOf?(upstream: Socket): ByteSource
  /** Does what `intercept` in the proxy's parts does. */
  intercept?(client: TunnelEnd, upstream: Socket): Promise<void> | undefined
}

/**
 * Joins a program's connection to its target until both directions have ended. When that is refused or fails, the program sees a
 * reset. Never throws; nothing is left open when it resolves.
 */
export async function serveDirect(
  socket: Duplex,
  { dial, carry, intercept, sourceOf = createByteSource }: DirectParts,
): Promise<void> {
  const gone = new AbortController()
  socket.once('close', () => gone.abort()).on('error', () => {})
  const client = { socket, source: createByteSource(socket) }
  try {
    const upstream = await dial(gone.signal)
    const intercepted = intercept?.(client, upstream)
    if (intercepted) return await intercepted
    const end = { socket: upstream, source: sourceOf(upstream) }
    const carried = passAhead(client, end) ? carry?.(upstream) : undefined
    await (carried ?? tunnel(client, end))
    await finish(socket)
    socket.destroy()
  } catch {
    reset(socket)
  }
}

/** Resets a connection, so that a program does not mistake a refusal for a server that sends nothing. */
export function reset(socket: Duplex): void {
  if (socket instanceof Socket && !socket.destroyed) socket.resetAndDestroy()
  else socket.destroy()
}
