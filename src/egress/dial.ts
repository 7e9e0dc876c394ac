import { connect, type Socket } from 'node:net'
import { beforeTimeout } from '../async/timeout.ts'
import { HttpError } from '../http1/http-error.ts'
import { type Address, parseAddress } from '../read/addresses.ts'
import { codeOf } from '../read/error-code.ts'
import { findDenial, findNameDenial, type Policy, type Target } from './policy.ts'

/** Every address of a name, as text, best first. Throws when it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>

export interface Dial {
  target: Target
  /** The rules as they are now. Read again once the name is resolved. */
  policy(): Policy
  resolve: Resolve
  signal: AbortSignal
  /** The target is allowed. */
  onAllowed(): void
  /** Called with each socket before it connects, and the address that was checked for it. */
  onSocket(socket: Socket, address: Address): void
}

const RESOLVE_MS = 10_000
const CONNECT_MS = 10_000
/** Addresses of one name that are tried: the program waits for each in turn. */
const MAX_ADDRESSES = 4

/** A connection to an address that was checked, not to a name. Throws an HttpError that says why there is none. */
export async function dial(options: Dial): Promise<Socket> {
  const { target, policy, signal } = options
  const nameDenial = findNameDenial(policy(), target)
  if (nameDenial) throw new HttpError(403, nameDenial)
  const texts = target.address ? [target.name] : await resolveName(options)
  const now = policy()
  const candidates = texts.flatMap(text => {
    const parsed = parseAddress(text)
    return parsed ? [{ text, parsed, denial: findDenial(now, target, parsed) }] : []
  })
  const allowed = candidates.filter(({ denial }) => denial === undefined).slice(0, MAX_ADDRESSES)
  if (allowed.length === 0) throw new HttpError(403, candidates[0]?.denial ?? 'it has no address')
  options.onAllowed()
  let failure = new HttpError(502, 'it has no address')
  for (const { text, parsed } of allowed) {
    // The rules may have changed while an earlier address was tried.
    const denial = findDenial(policy(), target, parsed)
    if (denial) throw new HttpError(403, denial)
    try {
      return await open(text, parsed, options)
    } catch (error) {
      if (!(error instanceof HttpError) || signal.aborted) throw error
      failure = error
    }
  }
  throw failure
}

async function resolveName({ target, resolve }: Dial): Promise<readonly string[]> {
  try {
    return await beforeTimeout(RESOLVE_MS, resolve(target.name), () => {
      throw new HttpError(504, 'its name was not resolved in time')
    })
  } catch (error) {
    throw error instanceof HttpError ? error : new HttpError(502, 'its name cannot be resolved')
  }
}

async function open(host: string, address: Address, { target, signal, onSocket }: Dial): Promise<Socket> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect({ host, port: target.port, allowHalfOpen: true })
  const abort = () => socket.destroy()
  const timer = setTimeout(() => {
    reject(new HttpError(504, 'it does not answer'))
    socket.destroy()
  }, CONNECT_MS)
  signal.addEventListener('abort', abort, { once: true })
  socket.once('connect', resolve)
  socket.on('error', error => {
    reject(new HttpError(502, `it cannot be reached: ${codeOf(error) ?? 'an error'}`))
  })
  socket.once('close', () => reject(new HttpError(502, 'the connection was closed')))
  onSocket(socket, address)
  try {
    await promise
    socket.setNoDelay(true)
    return socket
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}
