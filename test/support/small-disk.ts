import { afterAll, beforeAll } from 'bun:test'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MB = 1024 * 1024

/** A file system of its own, of a few hundred MB, on which a test may take all that is free. */
export interface SmallDisk {
  /** Where it is mounted. */
  readonly directory: string
  readonly freeMb: number
  /** Another program takes all but so much. */
  fill(leftMb: number): void
  /** It gives that back. */
  empty(): void
}

/** For the file that calls this, which runs as root. */
export function useSmallDisk(sizeMb: number): SmallDisk {
  const parent = mkdtempSync(join(tmpdir(), 'threadbox-small-disk-'))
  const [image, directory] = [join(parent, 'image'), join(parent, 'disk')]
  const hog = join(directory, 'hog')
  let hogs = 0

  beforeAll(() => {
    writeFileSync(image, '')
    truncateSync(image, sizeMb * MB)
    mkdirSync(directory)
    run('mkfs.ext4', '-q', '-F', '-m', '0', image)
    run('mount', '-o', 'loop', image, directory)
  })
  afterAll(() => {
    run('umount', directory)
    rmdirSync(directory)
    rmSync(parent, { recursive: true })
  })

  const freeMb = () => {
    const { bavail, bsize } = statfsSync(directory)
    return (bavail * bsize) / MB
  }
  return {
    directory,
    get freeMb() {
      return freeMb()
    },
    fill(leftMb) {
      // The file system takes some for itself.
      const bytes = Math.floor((freeMb() - Math.max(leftMb, 2)) * MB)
      if (bytes > 0) run('fallocate', '--length', String(bytes), `${hog}${hogs++}`)
      // Until nothing more fits in.
      if (leftMb === 0) run('sh', '-c', 'cat /dev/zero >"$1" 2>/dev/null; true', 'sh', `${hog}${hogs++}`)
    },
    empty() {
      while (hogs > 0) rmSync(`${hog}${--hogs}`, { force: true })
    },
  }
}

function run(...command: string[]): void {
  const { success, stderr } = Bun.spawnSync(command, { stdio: ['ignore', 'ignore', 'pipe'] })
  if (!success) throw new Error(`${command.join(' ')}: ${stderr}`)
}
