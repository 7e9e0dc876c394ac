import type { GuestConnection } from '../../src/guest/host/connect.ts'

/**
 * Closes a connection when its guest is silent for `silentMs` while a call waits for it: root inside can stop the bridge, and
 * the call would wait for ever. A guest that is paused for a backup is not silent.
 */
export function watchLiveness(guest: GuestConnection, silentMs: number, isCopied: () => boolean): void {
  let isWaiting = false
  const probe = async () => {
    if (isWaiting || guest.activeCalls === 0) return
    isWaiting = true
    const late = setInterval(() => isCopied() || guest.close(), silentMs)
    // Any answer will do.
    await guest.files.info('/').catch(() => {})
    clearInterval(late)
    isWaiting = false
  }
  const timer = setInterval(() => void probe(), silentMs)
  timer.unref()
  void guest.closed.then(() => clearInterval(timer))
}
