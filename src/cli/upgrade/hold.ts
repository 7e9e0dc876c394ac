import { chownSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { lockDirectory, lockForWork } from '../../db/lock.ts'
import { ApiError } from '../../errors.ts'

/** An upgrade holds a lock on this file of the data directory until it has found the new server ready, or went back. */
const UPGRADE_LOCK = 'upgrade.lock'
const LOOK_MS = 10

/** What a server knows of an upgrade that has started it. */
export interface Hold {
  /** Refuses a request while the upgrade has not found this server ready: nothing is to change until then, since it may go back. */
  refuse(request: Request): Response | undefined
  /** Resolves when no more is refused. */
  readonly over: Promise<void>
}

/** Takes part in an upgrade that is under way on the data directory. It is over when the upgrade's process ends, however it ends. */
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
      // Also between two looks: who has seen the upgrade end may ask at once.
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

/** Keeps each server that starts on the data directory from accepting anything until `release`. Undefined when another upgrade does. */
export function holdServers(dataDirectory: string): { release(): void } | undefined {
  const lock = lockForWork(dataDirectory, UPGRADE_LOCK)
  if (!lock) return undefined
  // The server may have another account than this command.
  const { uid, gid } = statSync(dataDirectory)
  chownSync(join(dataDirectory, UPGRADE_LOCK), uid, gid)
  return lock
}
