import type { Descriptor } from '../../descriptor.ts'
import type { Call, Lane } from '../wire/call.ts'
import type { OutputControl, OutputReads } from '../wire/requests.ts'
import type { OtherReader } from './output.ts'

/** Offers of a command's pipes to the server that has started it. */
export interface Offers {
  offer(lane: Lane, from: Descriptor): OtherReader
  /** The server has answered an offer, or has read a pipe to its end. */
  answered(reads: OutputReads): void
}

export function createOffers(call: Call): Offers {
  const waiting = new Map<Lane, (isReading: boolean) => void>()
  const nothing = () => {}
  /** Resolves to false also when the call has ended. */
  const answer = (lane: Lane) =>
    new Promise<boolean>(resolve => {
      waiting.set(lane, resolve)
      const gone = () => resolve(false)
      call.result.then(gone, gone)
    })
  return {
    answered: ({ lane, isReading }) => (waiting.get(lane) ?? nothing)(isReading),
    offer(lane, from) {
      const isReading = answer(lane)
      call.control({ offered: { lane, descriptor: from.number } } satisfies OutputControl)
      return {
        isReading,
        async drained() {
          const isDrained = answer(lane)
          call.control({ drain: lane } satisfies OutputControl)
          await isDrained
        },
      }
    },
  }
}
