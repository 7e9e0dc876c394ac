import { connect, type Socket } from 'node:net'
import { Refusal } from '../http1/refusal.ts'
import { type Address, parseAddress } from './addresses.ts'
import { type Policy, refusalOf, refusalOfName, type Target } from './policy.ts'

/** Every address of a name, as text, best first. Throws when it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>

export interface Dial {
  target: Target
  /** As it is now: asked again when the name is resolved. */
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
/** One name can have many; a program waits for all that are tried. */
const MAX_ADDRESSES = 4

/** A connection to an address that was checked, not to a name. Throws a Refusal that says why there is none. */
export async function dial(options: Dial): Promise<Socket> {
  const { target, policy, signal } = options
  const refused = refusalOfName(policy(), target)
  if (refused) throw new Refusal(403, refused)
  const texts = target.address ? [target.name] : await resolveName(options)
  const now = policy()
  const candidates = texts.flatMap(text => {
    const parsed = parseAddress(text)
    return parsed ? [{ text, parsed, refusal: refusalOf(now, target, parsed) }] : []
  })
  const allowed = candidates.filter(({ refusal }) => refusal === undefined).slice(0, MAX_ADDRESSES)
  if (allowed.length === 0) throw new Refusal(403, candidates[0]?.refusal ?? 'it has no address')
  options.onAllowed()
  let failure = new Refusal(502, 'it has no address')
  for (const { text, parsed } of allowed) {
    // It may have changed while an address before this one was tried.
    const since = refusalOf(policy(), target, parsed)
    if (since) throw new Refusal(403, since)
    try {
      return await open(text, parsed, options)
    } catch (error) {
      if (!(error instanceof Refusal) || signal.aborted) throw error
      failure = error
    }
  }
  throw failure
}

async function resolveName({ target, resolve }: Dial): Promise<readonly string[]> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Refusal(504, 'its name was not resolved in time')), RESOLVE_MS)
  try {
    return await Promise.race([resolve(target.name), late.promise])
  } catch (error) {
    throw error instanceof Refusal ? error : new Refusal(502, 'its name cannot be resolved')
  } finally {
    clearTimeout(timer)
  }
}

async function open(host: string, address: Address, { target, signal, onSocket }: Dial): Promise<Socket> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect({ host, port: target.port, allowHalfOpen: true })
  const abort = () => socket.destroy()
  const timer = setTimeout(() => {
    reject(new Refusal(504, 'it does not answer'))
    socket.destroy()
  }, CONNECT_MS)
  signal.addEventListener('abort', abort, { once: true })
  socket.once('connect', resolve)
  socket.on('error', error => {
    const { code = 'an error' } = error as NodeJS.ErrnoException
    reject(new Refusal(502, `it cannot be reached: ${code}`))
  })
  socket.once('close', () => reject(new Refusal(502, 'the connection was closed')))
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
