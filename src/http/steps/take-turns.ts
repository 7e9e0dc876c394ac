import { createRecent } from '../../core/limits/recent.ts'
import { getKey } from '../caller.ts'
import type { RequestContext } from '../context.ts'
import { readAuthorization } from '../socket.ts'
import type { Traffic } from '../traffic.ts'
import type { Step } from './step.ts'

/** So many credentials are known with their keys. */
const CREDENTIALS = 10_000
/** How much of a turn of the event loop a request takes: some pieces of streams have room beside it. */
const REQUEST = 3 / 4

/**
 * Begins one request in each turn of the event loop, of each key in its turn, before anything of it is done: a key that sends hundreds at
 * once waits for itself. A request whose credential was not good before takes the turn of its address.
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

/** Not the credential itself, which is not kept. Undefined: the request has none. */
function nameCredential({ request, preview }: RequestContext): string | undefined {
  const { headers } = request
  const ofE2b = headers.get('x-api-key') ?? headers.get('x-access-token')
  const credential = preview?.link ?? readAuthorization(request) ?? ofE2b ?? headers.get('cookie')
  return credential ? String(Bun.hash(credential)) : undefined
}
