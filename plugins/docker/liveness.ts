import type { GuestConnection } from '../../src/guest/host/connect.ts'

/**
 * Closes a connection when its guest is silent for this long while something waits for it: root inside can stop the
 * bridge, and nobody is to wait for ever.
 */
export function watchPulse(guest: GuestConnection, silentMs: number): void {
  let isAsking = false
  const ask = async () => {
    if (isAsking || guest.activeCalls === 0) return
    isAsking = true
    const late = setTimeout(() => guest.close(), silentMs)
    // What it answers is no matter.
    await guest.files.info('/').catch(() => {})
    clearTimeout(late)
    isAsking = false
  }
  const timer = setInterval(() => void ask(), silentMs)
  timer.unref()
  void guest.closed.then(() => clearInterval(timer))
}
