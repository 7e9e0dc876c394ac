import { existsSync } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { releaseImage } from './files/disk.ts'
import { closeStage } from './files/staging.ts'
import { erase } from './host/erase.ts'
import { type Ground, type Place, trashDirectory } from './host/layout.ts'
import { removeCgroups, removeFormerCgroups } from './jail/cgroup.ts'
import { killJail } from './jail/jail.ts'

/** Ends every process of an environment; its files stay. */
export async function stopJail(ground: Ground, place: Place): Promise<void> {
  if (!ground.root) return killJail(place)
  const end = async () => {
    await killJail(place)
    closeStage(place)
    await removeCgroups(place.cgroup)
    await removeFormerCgroups(place.id)
  }
  if (!existsSync(place.image)) await end()
  else if (!(await releaseImage(place.image, end))) {
    ground.log(`the disk of ${place.id} stays mounted somewhere; another program holds a copy of its mounts`)
  }
}

/** Ends an environment's processes and takes its files away; they are gone when the returned promise is. */
export async function removeEnvironment(ground: Ground, place: Place): Promise<void> {
  await stopJail(ground, place)
  if (!existsSync(place.directory)) return
  const trash = join(trashDirectory(ground.dataDirectory), `${place.id}.${crypto.randomUUID()}`)
  try {
    await mkdir(trashDirectory(ground.dataDirectory), { recursive: true, mode: 0o700 })
    await rename(place.directory, trash)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    // There is not even room for its name there.
    return erase(place.directory)
  }
  await erase(trash)
}
