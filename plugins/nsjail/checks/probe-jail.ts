import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { executableInside } from '../../../src/guest/host/install.ts'
import { hostDirectories, linkUsr } from '../files/host-base.ts'
import { layersOf, prepareLayers } from '../files/layers.ts'
import { closeStage, fillStage, HOST_DEVICES, openStage, type Stage } from '../files/staging.ts'
import { type Ground, keyOf, stageOf } from '../host/layout.ts'
import { attachMount, cloneMount } from '../host/linux.ts'
import { run } from '../host/run-program.ts'
import { firstIdOf, IDS_PER_JAIL } from '../host/user-ids.ts'
import { GUEST_INSIDE, type IdRange, jailConfig } from '../jail/config.ts'
import { openUserNamespace } from '../jail/namespace.ts'
import { seccompPolicy } from '../jail/seccomp.ts'
import { mayWriteLocal, showDirectory } from '../jail/shown.ts'

const WITHIN_MS = 5000
/** The highest range, which environments reach last. */
const SLOT = 36_000

/** Removing a nested directory of the lower layer is what fails first when overlays are only half supported. */
const trial = 'rm -rf /nested && test ! -e /nested && echo made >/made && test "$(cat /made)" = made'

/** The loader does all but to run it. */
const [loader = '', ...rest] = executableInside(GUEST_INSIDE)
const loadGuest = [loader, '--list', ...rest, '>/dev/null'].join(' ')

/**
 * Runs a short command in a jail like an environment's, and loads the guest that is there. `directory` is empty, in the data directory.
 */
export async function probeJail(ground: Ground, directory: string, nsjail: string, guestThere?: string): Promise<void> {
  const below = (name: string) => join(directory, name)
  const [base, box, empty, guest] = [below('base'), below('box'), below('empty'), guestThere ?? below('guest')]
  for (const path of [base, box, empty, below('guest')]) await mkdir(path, { mode: 0o755 })
  const command = guestThere === undefined ? trial : `${trial} && ${loadGuest}`
  await mkdir(join(base, 'nested/deeper/still'), { recursive: true })
  for (const path of ['usr', 'proc', 'dev']) await mkdir(join(base, path))
  await linkUsr(base)
  if (!ground.root) {
    const ids = { firstUid: ground.uid, firstGid: ground.gid, count: 1 }
    return enter(directory, nsjail, { base, box, guest, empty, devices: HOST_DEVICES }, ids, base, command)
  }
  const place = { stage: stageOf(keyOf(ground.dataDirectory), basename(directory)) }
  const stage = openStage(place, firstIdOf(SLOT))
  try {
    const userNamespace = await openUserNamespace(firstIdOf(SLOT))
    try {
      fillStage(stage, base, guest, userNamespace)
    } finally {
      userNamespace.close()
    }
    attachMount(cloneMount(box), stage.box)
    const ids = { firstUid: firstIdOf(SLOT), firstGid: firstIdOf(SLOT), count: IDS_PER_JAIL }
    await enter(directory, nsjail, stage, ids, base, command)
  } finally {
    closeStage(place)
  }
}

async function enter(
  directory: string,
  nsjail: string,
  stage: Stage,
  ids: IdRange,
  base: string,
  line: string,
): Promise<void> {
  prepareLayers(stage.box, base, ids, true)
  const { upper, work, local, localWork } = layersOf(stage.box)
  const config = join(directory, 'jail.cfg')
  const layers = {
    lower: stage.base,
    upper,
    work,
    ...(mayWriteLocal() && { local: { upper: local, work: localWork } }),
  }
  const { guest, empty, devices } = stage
  const shown = hostDirectories().flatMap(path => showDirectory(path))
  const spec = { ids, ...layers, guest, empty, devices, shown }
  const command = ['/bin/sh', '-c', line]
  await writeFile(config, jailConfig({ ...spec, command }))
  await run([nsjail, '--config', config], WITHIN_MS)
}

/** The least that nsjail does. */
export const runPlain = (nsjail: string) => run([nsjail, '-Mo', '-q', '--chroot', '/', '--', '/bin/true'], WITHIN_MS)

export const runWithSeccomp = (nsjail: string) =>
  run([nsjail, '-Mo', '-q', '--chroot', '/', '--seccomp_string', seccompPolicy, '--', '/bin/true'], WITHIN_MS)
