import { createRecent } from '../../core/limits/recent.ts'
import { getKey } from '../caller.ts'
import type { RequestContext } from '../context.ts'
import { readAuthorization } from '../socket.ts'
import type { Traffic } from '../traffic.ts'
import type { Step } from './step.ts'

/** How many credentials are remembered with their keys. */
const CREDENTIALS = 10_000
/** How much of a turn of the event loop a request takes: the rest is for pieces of streams. */
const REQUEST = 3 / 4

/**
 * Begins one request in each turn of the event loop, of each key in its turn, before anything else is done for it: a key that
 * sends hundreds at once waits only for itself. A request whose credential was not valid before takes the turn of its address.
 */
export function takeTurns({ turn }: Pick<Traffic, 'turn'>): Step {
  const keys = createRecent<string>(CREDENTIALS)
  return async (context, next) => {
    const credential = nameCredential(context)
    const known = credential && keys.get(credential)
    const waiting = turn(known ?? context.address ?? '', REQUEST)
    if (waiting) await waiting
    const response = await next()
    const key = getKey(context)
    if (credential && key !== '' && key !== known) keys.set(credential, key)
    return response
  }
}

/** Returns a hash of the credential, since the credential itself must not be kept. Undefined when the request has none. */
function nameCredential({ request, preview }: RequestContext): string | undefined {
  const { headers } = request
  const ofE2b = headers.get('x-api-key') ?? headers.get('x-access-token')
  const credential = preview?.link ?? readAuthorization(request) ?? ofE2b ?? headers.get('cookie')
  return credential ? String(Bun.hash(credential)) : undefined
}
