import { type Pump, pump } from '../../environment/pump.ts'
import type { Call, Lane } from '../wire/call.ts'
import type { ControlMessage } from '../wire/requests.ts'
import { outputControlOf } from '../wire/results.ts'
import { type GuestDescriptors, takePipe } from './guest-descriptors.ts'

/**
 * Reads the pipes that a guest offers for the output of a command, in place of the call's lanes. Gives what takes the control
 * messages of the call. That throws when the guest breaks the rules, as by a second offer: each is answered.
 */
export function readOffered(call: Call, descriptors: GuestDescriptors): (message: unknown) => void {
  const answered = new Set<Lane>()
  const pumps = new Map<Lane, Pump>()
  const answer = (lane: Lane, isReading: boolean) =>
    call.control({ reads: { lane, isReading } } satisfies ControlMessage)
  const stop = () => {
    for (const each of pumps.values()) each.stop()
  }
  call.result.then(stop, stop)

  return message => {
    const { offered, drain } = outputControlOf(message)
    if (offered) {
      const { lane, descriptor } = offered
      if (answered.has(lane)) throw new Error('a second offer of an output')
      answered.add(lane)
      const pipe = takePipe(descriptors, descriptor)
      if (pipe) {
        const take = (bytes: Uint8Array) =>
          call.pour(lane, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
        const { pendingBytes, widenPipe: widen } = descriptors
        pumps.set(lane, pump(pipe, take, { pendingBytes, widen, isGone: () => call.isOver, settleMs: 0 }))
      }
      answer(lane, pipe !== undefined)
    }
    if (drain !== undefined) {
      const drained = pumps.get(drain)
      if (!drained) throw new Error('an output that is not read')
      pumps.delete(drain)
      void drained.drained().then(() => {
        drained.stop()
        answer(drain, false)
      })
    }
  }
}
