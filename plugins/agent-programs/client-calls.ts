import { isDeepStrictEqual } from 'node:util'
import type { ProgramCall } from './program-call.ts'

/** Joins what a program announces of calls of the client's tools with the calls that it makes, which may have no id. */
export interface ClientCalls {
  /** The program tells of a call that it is about to make. */
  announce(call: ProgramCall): void
  /** The program makes a call. `take` gets the id that the reply has for it. */
  make(call: ProgramCall, take: (callId: string) => void): void
  /** Takes the id of a call that was made before it was announced. */
  findMade(call: ProgramCall): string | undefined
}

/** A call that is not announced by then is shown as it was made. */
const ANNOUNCED_WITHIN_MS = 1000

/** @param show shows a call that the program has not announced */
export function matchClientCalls(show: (call: ProgramCall) => void): ClientCalls {
  const announced: ProgramCall[] = []
  const pending: { call: ProgramCall; take: (callId: string) => void; timer: ReturnType<typeof setTimeout> }[] = []
  const made: ProgramCall[] = []

  function remove<Item>(items: Item[], isWanted: (item: Item) => boolean): Item | undefined {
    const index = items.findIndex(isWanted)
    return index < 0 ? undefined : items.splice(index, 1)[0]
  }

  return {
    announce(call) {
      const waiting = remove(pending, each => isSame(each.call, call))
      if (!waiting) return void announced.push(call)
      clearTimeout(waiting.timer)
      waiting.take(call.callId)
    },
    make(call, take) {
      const found = remove(announced, each => isSame(each, call))
      if (found) return take(found.callId)
      const timer = setTimeout(() => {
        remove(pending, each => each.call === call)
        const shown = { ...call, callId: call.callId || `client-${crypto.randomUUID()}` }
        show(shown)
        remove(announced, each => each.callId === shown.callId)
        made.push(shown)
        take(shown.callId)
      }, ANNOUNCED_WITHIN_MS)
      pending.push({ call, take, timer })
    },
    findMade: call => remove(made, each => isSame(each, call))?.callId,
  }
}

/** An id that both have decides. */
const isSame = (one: ProgramCall, other: ProgramCall): boolean =>
  one.callId && other.callId
    ? one.callId === other.callId
    : one.name === other.name && isDeepStrictEqual(one.input, other.input)
