import type { StoredMessage } from '../../plugin-api/index.ts'
import type { RunSteering, Steerings } from '../runtime.ts'

export function createSteerings(): Steerings {
  const open = new Map<string, RunSteering>()
  return {
    open(threadId) {
      open.get(threadId)?.close()
      const steering = createRunSteering(() => {
        if (open.get(threadId) === steering) open.delete(threadId)
      })
      open.set(threadId, steering)
      return steering
    },
    find: threadId => open.get(threadId),
  }
}

type Prepare = Parameters<RunSteering['begin']>[0]

interface Offer {
  id: string
  messages: readonly StoredMessage[]
}

function createRunSteering(onClose: () => void): RunSteering {
  /** What no engine has yet, in order: prepared or not. */
  let offers: Offer[] = []
  let ready: Offer[] = []
  let prepare: Prepare | undefined
  let preparing = Promise.resolve()
  const listeners = new Set<() => void>()

  const isOpen = (offer: Offer) => offers.includes(offer)

  function makeReady(offer: Offer, change: Prepare): void {
    preparing = preparing.then(async () => {
      if (!isOpen(offer)) return
      // What cannot be prepared stays a row: its own turn tells why.
      const messages = await change(offer.messages).catch(() => undefined)
      if (!messages || !isOpen(offer)) return
      ready.push({ ...offer, messages })
      for (const listener of listeners) listener()
    })
  }

  return {
    offer(id, messages) {
      const offer = { id, messages: messages.filter(({ role }) => role === 'user') }
      offers.push(offer)
      if (prepare) makeReady(offer, prepare)
    },
    withdraw(id) {
      const isHere = offers.some(offer => offer.id === id)
      offers = offers.filter(offer => offer.id !== id)
      ready = ready.filter(offer => offer.id !== id)
      return isHere
    },
    begin(change) {
      prepare = change
      for (const offer of offers) makeReady(offer, change)
    },
    take() {
      const taken = ready
      ready = []
      offers = offers.filter(({ id }) => !taken.some(offer => offer.id === id))
      return taken.flatMap(({ messages }) => messages)
    },
    onMessage(listener) {
      listeners.add(listener)
      if (ready.length > 0) listener()
      return () => listeners.delete(listener)
    },
    close() {
      offers = []
      ready = []
      listeners.clear()
      onClose()
    },
  }
}
