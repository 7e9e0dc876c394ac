import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const cached = join(import.meta.dir, '../../.cache/debian-bookworm-minbase.tar.gz')

/** A tarball of Debian's smallest root file system with apt, as debootstrap makes it. Made once, then cached. Wants root. */
export async function debianTarball(): Promise<string> {
  if (existsSync(cached)) return cached
  const scratch = mkdtempSync(join(tmpdir(), 'threadbox-debian-'))
  const [root, tarball] = [join(scratch, 'root'), `${cached}.${process.pid}`]
  try {
    await run(['debootstrap', '--variant=minbase', 'bookworm', root])
    await run(['tar', '-C', root, '--numeric-owner', '--exclude=./var/cache/apt/archives/*.deb', '-czf', tarball, '.'])
    renameSync(tarball, cached)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
    rmSync(tarball, { force: true })
  }
  return cached
}

async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [said, problems] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(`${command[0]}: ${said.slice(-2000)}${problems}`)
}
