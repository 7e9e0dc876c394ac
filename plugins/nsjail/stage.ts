import { chmodSync, existsSync, mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Descriptor } from './descriptor.ts'
import { type Place, stagesDirectory } from './layout.ts'
import { attachMount, cloneMount, detachMount, mountTmpfs } from './linux.ts'

/**
 * The mounts that a jail of root is made from, below one tmpfs that its unprivileged ids can pass through: data
 * directories are closed to them. It exists while the jail starts; the jail keeps what it has mounted from there.
 */
export interface Stage {
  base: string
  box: string
  guest: string
}

const SIZE_KB = 64

/** `firstId` is the jail's root: only it, and the host's root, can look in. */
export function openStage(place: Pick<Place, 'stage'>, firstId: number): Stage {
  if (mkdirSync(stagesDirectory, { recursive: true })) chmodSync(stagesDirectory, 0o711)
  closeStage(place)
  mkdirSync(place.stage, { mode: 0o700 })
  try {
    mountTmpfs(place.stage, SIZE_KB, firstId)
  } catch (error) {
    rmdirSync(place.stage)
    throw error
  }
  const stage = { base: join(place.stage, 'base'), box: join(place.stage, 'box'), guest: join(place.stage, 'guest') }
  for (const path of Object.values(stage)) mkdirSync(path, { mode: 0o755 })
  return stage
}

/** Shows the lower layer with its owners shifted into the jail's range, and the guest's files read-only. */
export function fillStage(stage: Stage, base: string, guest: string, userNamespace: Descriptor): void {
  attachMount(cloneMount(base, { userNamespace }), stage.base)
  attachMount(cloneMount(guest, { readOnly: true }), stage.guest)
}

/** Takes it all away, also what a server that died has left. */
export function closeStage(place: Pick<Place, 'stage'>): void {
  if (!existsSync(place.stage)) return
  while (detachMount(place.stage)) {
    // One more may be below.
  }
  rmdirSync(place.stage)
}
