import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { executableInside } from '../../../src/guest/host/install.ts'
import { hostDirectories, linkUsr } from '../files/host-base.ts'
import { prepareLayers, toLayers } from '../files/layers.ts'
import {
  closeStaging,
  fillStaging,
  HOST_DEVICES,
  openStaging,
  type StagingMounts,
  writeBootId,
} from '../files/staging.ts'
import { getDataDirectoryKey, type Host, stagingDirectory } from '../host/layout.ts'
import { attachMount, cloneMount } from '../host/linux.ts'
import { runProgram } from '../host/run-program.ts'
import { getFirstId, IDS_PER_JAIL } from '../host/user-ids.ts'
import { GUEST_INSIDE, type IdMapping, jailConfig } from '../jail/config.ts'
import { openUserNamespace } from '../jail/namespace.ts'
import { seccompPolicy } from '../jail/seccomp.ts'
import { mayWriteLocal, showDirectory } from '../jail/shown.ts'

const WITHIN_MS = 5000
/** The highest range, which environments take last. */
const PROBE_RANGE = 36_000

/** Removing a nested directory of the lower layer fails first when overlays are only half supported. */
const trial = 'rm -rf /nested && test ! -e /nested && echo made >/made && test "$(cat /made)" = made'

/** With --list the loader does everything except running the guest. */
const [loader = '', ...rest] = executableInside(GUEST_INSIDE)
const loadGuest = [loader, '--list', ...rest, '>/dev/null'].join(' ')

/**
 * Runs a short command in a jail like an environment's and loads `guestThere`, a guest's directory. `directory` is empty and lies
 * in the data directory.
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
    const bootId = writeBootId(below('boot_id'))
    const staging = { base, layers: [], disk, guest, empty, bootId, devices: HOST_DEVICES }
    return runTrial({ directory, nsjail, staging, ids, base, command })
  }
  const paths = { staging: stagingDirectory(getDataDirectoryKey(host.dataDirectory), basename(directory)) }
  const staging = openStaging(paths, getFirstId(PROBE_RANGE), 0)
  try {
    const userNamespace = openUserNamespace(getFirstId(PROBE_RANGE))
    try {
      fillStaging(staging, base, guest, userNamespace)
    } finally {
      userNamespace.close()
    }
    attachMount(cloneMount(disk), staging.disk)
    const ids = { firstUid: getFirstId(PROBE_RANGE), firstGid: getFirstId(PROBE_RANGE), count: IDS_PER_JAIL }
    await runTrial({ directory, nsjail, staging, ids, base, command })
  } finally {
    closeStaging(paths)
  }
}

interface Trial {
  directory: string
  nsjail: string
  staging: StagingMounts
  ids: IdMapping
  base: string
  command: string
}

async function runTrial({ directory, nsjail, staging, ids, base, command }: Trial): Promise<void> {
  prepareLayers({ disk: staging.disk, base, owner: ids, isHostBase: true })
  const { upper, work, local, localWork } = toLayers(staging.disk)
  const config = join(directory, 'jail.cfg')
  const layers = {
    lowers: [staging.base],
    upper,
    work,
    ...(mayWriteLocal() && { local: { lowers: [], upper: local, work: localWork } }),
  }
  const { guest, empty, bootId, devices } = staging
  const shown = hostDirectories().flatMap(path => showDirectory(path))
  const spec = { ids, ...layers, guest, empty, bootId, devices, shown }
  await writeFile(config, jailConfig({ ...spec, command: ['/bin/sh', '-c', command] }))
  await runProgram([nsjail, '--config', config], WITHIN_MS)
}

/** Runs nsjail with as few features as possible. */
export const runPlain = (nsjail: string) =>
  runProgram([nsjail, '-Mo', '-q', '--chroot', '/', '--', '/bin/true'], WITHIN_MS)

export const runWithSeccomp = (nsjail: string) =>
  runProgram([nsjail, '-Mo', '-q', '--chroot', '/', '--seccomp_string', seccompPolicy, '--', '/bin/true'], WITHIN_MS)
