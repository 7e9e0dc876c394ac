import { existsSync } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { removeCgroups } from './cgroup.ts'
import { imageReleased } from './disk.ts'
import { erase } from './erase.ts'
import { killJail } from './jail.ts'
import { type Ground, type Place, trashDirectory } from './layout.ts'
import { closeStage } from './stage.ts'

/** Ends every process of an environment; its files stay. */
export async function stopJail(ground: Ground, place: Place): Promise<void> {
  await killJail(place)
  if (!ground.root) return
  closeStage(place)
  await removeCgroups(place.id)
  if (existsSync(place.image) && !(await imageReleased(place.image))) {
    ground.log(`the disk of ${place.id} stays mounted somewhere; another program holds a copy of its mounts`)
  }
}

/** Ends an environment's processes and takes its files away; they are gone when the returned promise is. */
export async function removeEnvironment(ground: Ground, place: Place): Promise<void> {
  await stopJail(ground, place)
  if (!existsSync(place.directory)) return
  const trash = join(trashDirectory(ground.dataDirectory), `${place.id}.${crypto.randomUUID()}`)
  await mkdir(trashDirectory(ground.dataDirectory), { recursive: true, mode: 0o700 })
  await rename(place.directory, trash)
  await erase(trash)
}
