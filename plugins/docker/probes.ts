import { messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import type { Check } from '../../src/plugin-api/index.ts'
import { objectsOf } from '../../src/read/json.ts'
import { containerName } from './container.ts'
import { type ContainerDependencies, createContainer } from './create-container.ts'
import type { DockerEngine, EngineVersion } from './engine.ts'
import { EngineLost } from './failure.ts'
import { findImage } from './image.ts'
import type { CreatedWith } from './labels.ts'
import type { JoinedGuest } from './redirect.ts'
import { removeContainer } from './remove-container.ts'
import { assertRuntime, findRuntimeArgs, isolationOf } from './runtime.ts'
import { startContainer, stopContainer } from './start.ts'

const required = true
/** Names as Go has them. */
const architectures: Record<string, string> = { x64: 'amd64', arm64: 'arm64' }
const limits = { memoryMb: 256, processes: 64, cpus: 1, diskMb: 256 }

/** Tries what environments need, in a container like theirs if an image is at hand, and leaves nothing behind. */
export async function probeEngine(
  dependencies: ContainerDependencies,
  image: string,
  runtimes: readonly string[] = [],
): Promise<Check[]> {
  const { engine } = dependencies
  let version: EngineVersion
  try {
    version = await engine.version()
  } catch (error) {
    const remedy = error instanceof EngineLost ? startEngine : 'Use Docker 20.10 or newer, or Podman 4 or newer.'
    return [failed('engine', error, remedy)]
  }
  const { name, api, os, architecture } = version
  const reached: Check = { name: 'engine', ok: true, required, detail: `${name}, API ${api}, at ${engine.address}` }
  const wanted = architectures[process.arch]
  if (os !== 'linux' || architecture !== wanted) {
    const problem = `the engine runs ${os}/${architecture}, this executable is for linux/${wanted}`
    return [reached, failed('platform', problem, 'Run the server on a machine like that of the engine.')]
  }
  try {
    const [first, ...others] = runtimes
    const checks = await Promise.all([
      limitCheck(dependencies),
      containerChecks(dependencies, image, first),
      ...others.map(each => furtherRuntime(dependencies, image, each)),
    ])
    return [reached, ...checks.flat()]
  } catch (error) {
    return [reached, failed('containers', error, undefined)]
  }
}

const startEngine =
  'Start Docker (systemctl start docker), as root or a user of the group docker; or name an engine by DOCKER_HOST.'

async function limitCheck({ engineLimits }: ContainerDependencies): Promise<Check> {
  const unlimited = await engineLimits.findUnlimited()
  const name = 'limits'
  if (unlimited.length === 0) return { name, ok: true, required: false, detail: 'memory, processes and cpus' }
  const remedy = "Give the engine's machine the memory, pids and cpu cgroups."
  return { name, ok: false, required: false, detail: `the engine cannot limit ${unlimited.join(', ')}`, remedy }
}

async function containerChecks(dependencies: ContainerDependencies, image: string, runtime?: string): Promise<Check[]> {
  const { engine } = dependencies
  const present = (await findImage(engine, image)) ? image : await findAnyImage(engine)
  const name = 'containers'
  if (runtime !== undefined) {
    try {
      await assertRuntime(engine, runtime)
    } catch (error) {
      return [failed('runtime', error, `Name it in the engine's daemon.json and restart the engine.`)]
    }
  }
  if (present === undefined) {
    const detail = `not tried, the engine has no image yet: the first sandbox pulls ${image}`
    return [{ name, ok: true, required: false, detail }]
  }
  // It sorts before the ids of environments, so the sweep of orphans removes it should it be left behind.
  const id = `doctor-${crypto.randomUUID()}`
  try {
    const outlets = { onProxy() {}, onDirect() {} }
    const wanted = { image: present, runtime, limits, outlets }
    const { createdWith, guest, imageId } = await createContainer(dependencies, id, wanted)
    const lasting = runtime === undefined ? [] : await runtimeChecks(dependencies, runtime, { id, imageId, ...guest })
    guest.connection.close()
    return [
      { name, ok: true, required, detail: `start, here one of ${present}, and their guest answers` },
      network(guest, runtime),
      seccomp(createdWith),
      quota(createdWith),
      ...lasting,
    ]
  } catch (error) {
    return [failed(name, error, undefined)]
  } finally {
    await removeContainer(engine, containerName(id))
  }
}

/**
 * Checks a runtime besides the first one, for sandboxes that name it or ask for its class. When the check fails, the other sandboxes can
 * still be made.
 */
async function furtherRuntime(dependencies: ContainerDependencies, image: string, runtime: string): Promise<Check[]> {
  const checks = await containerChecks(dependencies, image, runtime)
  const isOfRuntime = ({ name, ok, required }: Check) =>
    name === 'runtime' || (!ok && (required || name === 'transparent network'))
  return checks
    .filter(each => isOfRuntime(each))
    .map(({ required, name, ...each }) => ({
      ...each,
      name: `runtime ${runtime}`,
      required: false,
      // Only a failed check that is required keeps sandboxes of this class from being made.
      ...(required && { isolation: isolationOf(runtime) }),
    }))
}

/** Checks what is uncertain on a chosen runtime: that files outlive a stop of their container, and that its cgroups are used. */
async function runtimeChecks(
  { engine, dataId }: ContainerDependencies,
  runtime: string,
  { id, imageId, connection }: { id: string; imageId: string; connection: GuestConnection },
): Promise<Check[]> {
  const [name, container, path] = ['runtime', containerName(id), '/home/user/lasts']
  await connection.files.write(path, new Blob(['lasts']).stream())
  connection.close()
  await stopContainer(engine, container)
  const outlets = { onProxy() {}, onDirect() {} }
  const { connection: again } = await startContainer({ engine, container, imageId, dataId, runtime, outlets })
  const lasts = await again.files.info(path).catch(() => undefined)
  again.close()
  if (!lasts) {
    const detail = `${runtime} loses the files of a container that stops`
    return [{ name, ok: false, required, detail, remedy: 'Give gVisor the argument --overlay2=none.' }]
  }
  const args = await findRuntimeArgs(engine, runtime)
  if (!args.some(each => each.includes('ignore-cgroups')))
    return [{ name, ok: true, required, detail: `${runtime} (${isolationOf(runtime)})` }]
  const remedy = 'Take --ignore-cgroups out of its arguments, where the machine lets it use cgroups.'
  const detail = `${runtime} ignores cgroups: memory, processes and cpus of a sandbox are not limited`
  return [{ name, ok: false, required: false, detail, remedy }]
}

async function findAnyImage(engine: DockerEngine): Promise<string | undefined> {
  const images = objectsOf(await engine.call('GET', '/images/json'))
  const [id] = images.flatMap(({ Id }) => (typeof Id === 'string' ? [Id] : []))
  return id
}

function network({ onlyProxy }: JoinedGuest, runtime: string | undefined): Check {
  const name = 'transparent network'
  if (onlyProxy === undefined) {
    const detail = 'TCP and names of programs that know no proxy lead to the server'
    return { name, ok: true, required: false, detail }
  }
  const until = 'Until then programs inside reach the server by its proxy alone.'
  if (isolationOf(runtime) === 'gvisor')
    return {
      name,
      ok: false,
      required: false,
      detail: onlyProxy,
      remedy: `${until} Give gVisor the argument --net-raw.`,
    }
  const remedy = `${until} It takes an engine that lets containers share a network, with NET_ADMIN, and nf_tables with nat and redirect on the engine's machine: modprobe nf_tables nft_chain_nat nft_redir nft_reject_inet.`
  return { name, ok: false, required: false, detail: onlyProxy, remedy }
}

function seccomp({ hasSeccomp }: CreatedWith): Check {
  const name = 'seccomp'
  if (hasSeccomp) return { name, ok: true, required: false, detail: 'the profile of this build is in force' }
  const detail = 'the engine takes no profile: under its own, a process can hide from the kill of its tree'
  const remedy = 'Use Docker, or a Podman on the machine of the server.'
  return { name, ok: false, required: false, detail, remedy }
}

function quota({ hasQuota }: CreatedWith): Check {
  const name = 'disk quota'
  if (hasQuota) return { name, ok: true, required: false, detail: "the engine's storage holds sandboxes to their size" }
  const detail = "the engine's storage has none: the disk limit of a sandbox is watched instead"
  const remedy = "Put the engine's data on xfs mounted with pquota, with the storage driver overlay2."
  return { name, ok: false, required: false, detail, remedy }
}

function failed(name: string, problem: unknown, remedy: string | undefined): Check {
  return { name, ok: false, required, detail: messageOf(problem), ...(remedy !== undefined && { remedy }) }
}
