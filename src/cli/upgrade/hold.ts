import { chownSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { lockDirectory, lockForWork } from '../../db/lock.ts'
import { ApiError } from '../../errors.ts'

/** An upgrade holds a lock on this file of the data directory until it has found the new server ready, or has gone back. */
const UPGRADE_LOCK = 'upgrade.lock'
const LOOK_MS = 10

/** An upgrade that has started this server, as far as the server knows of it. */
export interface Hold {
  /**
   * Refuses a request while the upgrade has not found this server ready: nothing may change until then, because the upgrade may
   * go back.
   */
  refuse(request: Request): Response | undefined
  /** Resolves when requests are no longer refused. */
  readonly over: Promise<void>
}

/** Takes part in an upgrade that goes on for the data directory. It is over when the upgrade's process ends, however it ends. */
export function findHold(dataDirectory: string): Hold {
  if (!isLocked(dataDirectory)) return { refuse: () => undefined, over: Promise.resolve() }
  const { promise, resolve } = Promise.withResolvers<void>()
  let isOn = true
  const look = () => {
    if (!isOn || isLocked(dataDirectory)) return
    isOn = false
    clearInterval(timer)
    resolve()
  }
  const timer = setInterval(look, LOOK_MS)
  return {
    refuse({ url }) {
      if (!isOn || new URL(url).pathname.startsWith('/health')) return undefined
      // The lock is checked at each request too, because somebody who has seen the upgrade end may send one at once.
      look()
      if (!isOn) return undefined
      const refusal = new ApiError('shutting_down', 'The server is being upgraded.')
      return Response.json(refusal, { status: refusal.status, headers: { 'retry-after': '1' } })
    },
    over: promise,
  }
}

function isLocked(dataDirectory: string): boolean {
  if (!existsSync(join(dataDirectory, UPGRADE_LOCK))) return false
  const lock = lockDirectory(dataDirectory, UPGRADE_LOCK)
  lock?.release()
  return lock === undefined
}

/**
 * Keeps each server that starts on the data directory from accepting anything until `release`. Undefined when another upgrade
 * does so.
 */
export function holdServers(dataDirectory: string): { release(): void } | undefined {
  const lock = lockForWork(dataDirectory, UPGRADE_LOCK)
  if (!lock) return undefined
  // The server may run under another account than this command.
  const { uid, gid } = statSync(dataDirectory)
  chownSync(join(dataDirectory, UPGRADE_LOCK), uid, gid)
  return lock
}
