import { ApiError } from '../../errors.ts'
import type { Call } from '../wire/call.ts'
import type { Channel } from '../wire/channel.ts'
import { PROTOCOL } from '../wire/frame.ts'
import type { GuestRequest } from '../wire/requests.ts'
import { protocolOf, versionsOf } from '../wire/results.ts'
import { knownSince, OLDEST_GUEST, WIRE_VERSION } from '../wire/version.ts'

/** Opens a call to a guest. Throws when its guest is too old for the request; other calls go on. */
export type AskGuest = (request: GuestRequest) => Call

/** Opens a call to a guest that has said hello. `since` says with which version each request came. */
export function askGuest(channel: Channel, hello: unknown, since = knownSince): AskGuest {
  const { version } = versionsOf(hello)
  return request => {
    if (version >= since[request.op]) return channel.open(request)
    throw new ApiError(
      'conflict',
      `The sandbox runs since an earlier version of threadbox, which cannot do this (${request.op}). Stop it: its next use starts it with this version.`,
    )
  }
}

/** Explains why this server cannot work with a guest that begins with this message; undefined when it can. */
export function findMismatch(hello: unknown): string | undefined {
  const protocol = protocolOf(hello)
  const { version, oldestServer } = versionsOf(hello)
  const its = 'It runs the guest of another version of threadbox'
  if (protocol !== PROTOCOL) return `${its} (protocol ${protocol}, not ${PROTOCOL}).`
  if (version < OLDEST_GUEST) return `${its} (${version}; this server knows those from ${OLDEST_GUEST} on).`
  if (WIRE_VERSION < oldestServer)
    return `${its} (${version}, for servers from ${oldestServer} on; this one is ${WIRE_VERSION}).`
  return undefined
}
