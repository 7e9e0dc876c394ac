import { existsSync } from 'node:fs'
import { mkdir, readFile, rmdir, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../../src/errors.ts'
import { installGuest } from '../../../src/guest/host/install.ts'
import type { Check } from '../../../src/plugin-api/index.ts'
import { probeImages } from '../files/disk-template.ts'
import { erase } from '../host/erase.ts'
import { type Host, newProbeName } from '../host/layout.ts'
import { listMountsBelow } from '../host/mounts.ts'
import { getNsjail, guestDirectory } from '../host/programs.ts'
import { END_ID, getFirstId } from '../host/user-ids.ts'
import { probeCgroups } from '../jail/cgroup.ts'
import { probeJail, runPlain, runWithSeccomp } from './probe-jail.ts'
import { tryRedirect, tryRedirectInJail } from './probe-network.ts'
import { remedyFor } from './remedies.ts'

const required = true

/** Tries everything that environments need, in a jail like theirs, and leaves nothing behind. Takes a few ms when all is well. */
export async function probeHost(host: Host, executable: string, nsjailPath?: string): Promise<Check[]> {
  const isNew = !existsSync(host.dataDirectory)
  await mkdir(host.dataDirectory, { recursive: true, mode: 0o700 })
  const directory = join(host.dataDirectory, newProbeName())
  await mkdir(directory, { mode: 0o700 })
  try {
    const [level, jail, images, cgroups, network] = await Promise.all([
      isolation(host),
      jailChecks(host, directory, executable, nsjailPath),
      imageCheck(host, directory),
      cgroupCheck(host),
      networkCheck(host, executable, nsjailPath),
    ])
    return [level, ...jail, network, cgroups, images, ...localChecks(), ...(await userNamespaceChecks(host))]
  } finally {
    await erase(directory)
    if (isNew) await rmdir(host.dataDirectory).catch(() => {})
  }
}

async function isolation({ isRoot, uid }: Host): Promise<Check> {
  const name = 'isolation'
  if (!isRoot) {
    const detail = `as ordinary user ${uid}: sandboxes share the user id, have one user inside, and memory and cpu are not limited`
    return { name, ok: true, required: false, detail }
  }
  if (await hasRanges()) {
    const detail = 'full: the server is root, so each sandbox has user ids of its own'
    return { name, ok: true, required: false, detail }
  }
  const detail = 'the server is root of a container that has no user ids to give to sandboxes'
  const remedy = 'Run the server on the host, in a container without its own user namespace, or as an ordinary user.'
  return { name, ok: false, required, detail, remedy }
}

/** Whether the ids of all sandboxes exist in the server's own user namespace. */
async function hasRanges(): Promise<boolean> {
  const map = await readFile('/proc/self/uid_map', 'utf8')
  return map.split('\n').some(line => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number)
    return first <= getFirstId(0) && first + count >= END_ID
  })
}

/** Tries one jail that uses everything. Only when that fails are its parts tried, to find the one at fault. */
async function jailChecks(host: Host, directory: string, executable: string, nsjailPath?: string): Promise<Check[]> {
  let nsjail: string
  let guest: string | undefined
  try {
    nsjail = await getNsjail(host.dataDirectory, nsjailPath)
  } catch (error) {
    return [failed('nsjail', error, 'Install nsjail, or name its executable with --nsjail-path.')]
  }
  try {
    guest = await findGuest(host.dataDirectory, executable)
  } catch (error) {
    return [failed('guest', error, 'Make room in the data directory, and let the server write there.')]
  }
  const whole = await findProblem(() => probeJail(host, directory, nsjail, guest))
  if (whole === undefined) return passed(host, nsjail)

  const fileSystem = await fileSystemChecks(host)
  const plain = await findProblem(() => runPlain(nsjail))
  if (plain !== undefined) return [failed('nsjail', plain, remedyFor(plain, nsjail)), ...fileSystem]
  const runs: Check = { name: 'nsjail', ok: true, required, detail: nsjail }
  const seccomp = await findProblem(() => runWithSeccomp(nsjail))
  if (seccomp !== undefined) return [runs, failed('seccomp', seccomp, remedyFor(seccomp, nsjail)), ...fileSystem]
  if (fileSystem.length > 0 && /Invalid argument|EINVAL/.test(whole)) return [runs, ...fileSystem]
  return [runs, failed(findFailedPart(whole), whole, remedyFor(whole, nsjail)), ...fileSystem]
}

/** Finds this build's guest in the data directory, and repairs it when it is damaged. Undefined before the first sandbox. */
async function findGuest(dataDirectory: string, executable: string): Promise<string | undefined> {
  const directory = await guestDirectory(dataDirectory, executable).catch(() => undefined)
  if (directory === undefined || !existsSync(directory)) return undefined
  await installGuest(directory, executable)
  return directory
}

const OVERLAY = 0x794c7630

/** Explains an "invalid argument" of the kernel: an overlay cannot write to another one, nor have its owners shifted. */
async function fileSystemChecks({ dataDirectory }: Host): Promise<Check[]> {
  const { type } = await statfs(dataDirectory)
  if (type !== OVERLAY) return []
  const detail = `${dataDirectory} is on an overlay, like every directory of a container that is no volume`
  const remedy = 'Put it on a volume: docker run --volume /tmp, or name a directory of one with --data-dir.'
  return [{ name: 'data directory', ok: false, required, detail, remedy }]
}

/** Which part of the jail the kernel's message refers to. */
function findFailedPart(problem: string): string {
  if (/mount_setattr|user namespace/.test(problem)) return 'idmapped mounts'
  return /^(mount|move_mount|open_tree) /.test(problem) ? 'mounts' : 'overlay'
}

function passed({ isRoot }: Host, nsjail: string): Check[] {
  const checks: Check[] = [
    { name: 'nsjail', ok: true, required, detail: nsjail },
    { name: 'overlay', ok: true, required, detail: 'mounts in the data directory, inside a jail' },
    { name: 'seccomp', ok: true, required, detail: 'the policy compiles and holds' },
  ]
  if (isRoot) checks.push({ name: 'idmapped mounts', ok: true, required, detail: 'work in the data directory' })
  return checks
}

function localChecks(): Check[] {
  const [mount] = listMountsBelow('/usr/local')
  if (mount === undefined) return []
  const detail = `${mount} is a mount: sandboxes on the host's base cannot install programs into /usr/local`
  const remedy = 'Mount it elsewhere.'
  return [{ name: '/usr/local', ok: false, required: false, detail, remedy }]
}

async function cgroupCheck({ isRoot, dataDirectory }: Host): Promise<Check> {
  const name = 'cgroups'
  const limited = isRoot ? await probeCgroups(dataDirectory) : []
  if (limited.length === 3) return { name, ok: true, required: false, detail: `writable: ${limited.join(', ')}` }
  const detail = limited.length > 0 ? `only ${limited.join(', ')} can be limited` : 'no cgroup can be written'
  const remedy = isRoot
    ? 'Give the server a writable /sys/fs/cgroup with the memory, pids and cpu controllers.'
    : 'Run the server as root to limit memory and cpu.'
  return { name, ok: false, required: false, detail, remedy }
}

async function networkCheck(host: Host, executable: string, nsjailPath?: string): Promise<Check> {
  const name = 'transparent network'
  const problem = await findProblem(async () => {
    // Root in a container may not change every network, but it may change the networks of jails that it makes.
    if (host.isRoot && (await findProblem(async () => tryRedirect())) === undefined) return
    await tryRedirectInJail(await getNsjail(host.dataDirectory, nsjailPath), executable)
  })
  if (problem === undefined) {
    const detail = 'TCP and names of programs that know no proxy lead to the server'
    return { name, ok: true, required: false, detail }
  }
  const remedy =
    'Until then programs inside reach the server by its proxy alone. It takes nf_tables with nat and redirect: modprobe nf_tables nft_chain_nat nft_redir nft_reject_inet.'
  return { name, ok: false, required: false, detail: problem, remedy }
}

async function imageCheck(host: Host, directory: string): Promise<Check> {
  const name = 'disk images'
  if (!host.isRoot) {
    const detail = 'need root: the disk limit of a sandbox is watched instead'
    return { name, ok: false, required: false, detail, remedy: 'Run the server as root to limit disks exactly.' }
  }
  const problem = await findProblem(() => probeImages(directory))
  if (problem === undefined) return { name, ok: true, required: false, detail: 'ext4 images can be made and mounted' }
  const remedy = 'Install e2fsprogs and give the server loop devices; until then disk limits are watched.'
  return { name, ok: false, required: false, detail: problem, remedy }
}

const sysctls = [
  { path: '/proc/sys/user/max_user_namespaces', bad: '0', fix: 'sysctl user.max_user_namespaces=15000', root: true },
  { path: '/proc/sys/kernel/unprivileged_userns_clone', bad: '0', fix: 'sysctl kernel.unprivileged_userns_clone=1' },
  {
    path: '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
    bad: '1',
    fix: "Give nsjail an AppArmor profile with 'userns,', or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
  },
]

/** Settings that can forbid user namespaces. Not required by themselves: a jail that runs has passed them. */
async function userNamespaceChecks(host: Host): Promise<Check[]> {
  const checks: Check[] = []
  for (const { path, bad, fix, root = false } of sysctls) {
    const value = (await readFile(path, 'utf8').catch(() => '')).trim()
    if (value !== bad || (host.isRoot && !root)) continue
    checks.push({ name: 'user namespaces', ok: false, required: false, detail: `${path} is ${value}`, remedy: fix })
  }
  return checks
}

function failed(name: string, problem: unknown, remedy: string | undefined): Check {
  return { name, ok: false, required, detail: messageOf(problem), ...(remedy !== undefined && { remedy }) }
}

/** Runs an attempt. Undefined when it worked, else the reason why not. */
async function findProblem(attempt: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await attempt()
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}
