import type { GuestConnection } from '../../src/guest/host/connect.ts'

/**
 * Closes a connection when its guest is silent for `silentMs` while a call waits for it: root inside can stop the bridge, and
 * the call would wait for ever.
 */
export function watchLiveness(guest: GuestConnection, silentMs: number): void {
  let isWaiting = false
  const probe = async () => {
    if (isWaiting || guest.activeCalls === 0) return
    isWaiting = true
    const late = setTimeout(() => guest.close(), silentMs)
    // Any answer will do.
    await guest.files.info('/').catch(() => {})
    clearTimeout(late)
    isWaiting = false
  }
  const timer = setInterval(() => void probe(), silentMs)
  timer.unref()
  void guest.closed.then(() => clearInterval(timer))
}
