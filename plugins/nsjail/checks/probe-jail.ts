import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { executableInside } from '../../../src/guest/host/install.ts'
import { hostDirectories, linkUsr } from '../files/host-base.ts'
import { prepareLayers, toLayers } from '../files/layers.ts'
import { closeStaging, fillStaging, HOST_DEVICES, openStaging, type StagingMounts } from '../files/staging.ts'
import { getDataDirectoryKey, type Host, stagingDirectory } from '../host/layout.ts'
import { attachMount, cloneMount } from '../host/linux.ts'
import { runProgram } from '../host/run-program.ts'
import { getFirstId, IDS_PER_JAIL } from '../host/user-ids.ts'
import { GUEST_INSIDE, type IdMapping, jailConfig } from '../jail/config.ts'
import { openUserNamespace } from '../jail/namespace.ts'
import { seccompPolicy } from '../jail/seccomp.ts'
import { mayWriteLocal, showDirectory } from '../jail/shown.ts'

const WITHIN_MS = 5000
/** The highest range, which environments reach last. */
const PROBE_RANGE = 36_000

/** Removing a nested directory of the lower layer is what fails first when overlays are only half supported. */
const trial = 'rm -rf /nested && test ! -e /nested && echo made >/made && test "$(cat /made)" = made'

/** The loader does all but to run it. */
const [loader = '', ...rest] = executableInside(GUEST_INSIDE)
const loadGuest = [loader, '--list', ...rest, '>/dev/null'].join(' ')

/**
 * Runs a short command in a jail like an environment's, and loads the guest that is there. `directory` is empty, in the data directory.
 */
export async function probeJail(host: Host, directory: string, nsjail: string, guestThere?: string): Promise<void> {
  const below = (name: string) => join(directory, name)
  const [base, disk, empty, guest] = [below('base'), below('disk'), below('empty'), guestThere ?? below('guest')]
  for (const path of [base, disk, empty, below('guest')]) await mkdir(path, { mode: 0o755 })
  const command = guestThere === undefined ? trial : `${trial} && ${loadGuest}`
  await mkdir(join(base, 'nested/deeper/still'), { recursive: true })
  for (const path of ['usr', 'proc', 'dev']) await mkdir(join(base, path))
  await linkUsr(base)
  if (!host.isRoot) {
    const ids = { firstUid: host.uid, firstGid: host.gid, count: 1 }
    return enter(directory, nsjail, { base, disk, guest, empty, devices: HOST_DEVICES }, ids, base, command)
  }
  const paths = { staging: stagingDirectory(getDataDirectoryKey(host.dataDirectory), basename(directory)) }
  const staging = openStaging(paths, getFirstId(PROBE_RANGE))
  try {
    const userNamespace = await openUserNamespace(getFirstId(PROBE_RANGE))
    try {
      fillStaging(staging, base, guest, userNamespace)
    } finally {
      userNamespace.close()
    }
    attachMount(cloneMount(disk), staging.disk)
    const ids = { firstUid: getFirstId(PROBE_RANGE), firstGid: getFirstId(PROBE_RANGE), count: IDS_PER_JAIL }
    await enter(directory, nsjail, staging, ids, base, command)
  } finally {
    closeStaging(paths)
  }
}

async function enter(
  directory: string,
  nsjail: string,
  staging: StagingMounts,
  ids: IdMapping,
  base: string,
  line: string,
): Promise<void> {
  prepareLayers(staging.disk, base, ids, true)
  const { upper, work, local, localWork } = toLayers(staging.disk)
  const config = join(directory, 'jail.cfg')
  const layers = {
    lower: staging.base,
    upper,
    work,
    ...(mayWriteLocal() && { local: { upper: local, work: localWork } }),
  }
  const { guest, empty, devices } = staging
  const shown = hostDirectories().flatMap(path => showDirectory(path))
  const spec = { ids, ...layers, guest, empty, devices, shown }
  const command = ['/bin/sh', '-c', line]
  await writeFile(config, jailConfig({ ...spec, command }))
  await runProgram([nsjail, '--config', config], WITHIN_MS)
}

/** The least that nsjail does. */
export const runPlain = (nsjail: string) =>
  runProgram([nsjail, '-Mo', '-q', '--chroot', '/', '--', '/bin/true'], WITHIN_MS)

export const runWithSeccomp = (nsjail: string) =>
  runProgram([nsjail, '-Mo', '-q', '--chroot', '/', '--seccomp_string', seccompPolicy, '--', '/bin/true'], WITHIN_MS)
