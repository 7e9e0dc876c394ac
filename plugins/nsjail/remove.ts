import { existsSync } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../src/read/error-code.ts'
import { releaseImage } from './files/disk.ts'
import { closeStaging } from './files/staging.ts'
import { erase } from './host/erase.ts'
import { type EnvironmentPaths, type Host, trashDirectory } from './host/layout.ts'
import { removeCgroups, removeFormerCgroups } from './jail/cgroup.ts'
import { killJail } from './jail/jail.ts'

/** Ends every process of an environment; its files stay. */
export async function stopJail(host: Host, paths: EnvironmentPaths): Promise<void> {
  if (!host.isRoot) return killJail(paths)
  const end = async () => {
    await killJail(paths)
    closeStaging(paths)
    await removeCgroups(paths.cgroup)
    await removeFormerCgroups(paths.id)
  }
  if (!existsSync(paths.image)) await end()
  else if (!(await releaseImage(paths.image, end))) {
    host.log(`the disk of ${paths.id} stays mounted somewhere; another program holds a copy of its mounts`)
  }
}

/** Ends an environment's processes and erases its files. Resolves when they are gone. */
export async function removeEnvironment(host: Host, paths: EnvironmentPaths): Promise<void> {
  await stopJail(host, paths)
  if (!existsSync(paths.directory)) return
  const trash = join(trashDirectory(host.dataDirectory), `${paths.id}.${crypto.randomUUID()}`)
  try {
    await mkdir(trashDirectory(host.dataDirectory), { recursive: true, mode: 0o700 })
    await rename(paths.directory, trash)
  } catch (error) {
    if (codeOf(error) !== 'ENOSPC') throw error
    // A full disk has no room for its name there.
    return erase(paths.directory)
  }
  await erase(trash)
}
