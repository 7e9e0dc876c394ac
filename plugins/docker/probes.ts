import { messageOf } from '../../src/errors.ts'
import type { Check } from '../../src/plugin-api/index.ts'
import { objectsOf } from '../../src/read/json.ts'
import { containerName } from './container.ts'
import { type ContainerDependencies, createContainer } from './create-container.ts'
import type { DockerEngine, EngineVersion } from './engine.ts'
import { EngineLost } from './failure.ts'
import { findImage } from './image.ts'
import type { CreatedWith } from './labels.ts'
import { removeContainer } from './start.ts'

const required = true
/** Names as Go has them. */
const architectures: Record<string, string> = { x64: 'amd64', arm64: 'arm64' }
const limits = { memoryMb: 256, processes: 64, cpus: 1, diskMb: 256 }

/** Tries what environments need, in a container like theirs if an image is at hand, and leaves nothing behind. */
export async function probeEngine(dependencies: ContainerDependencies, image: string): Promise<Check[]> {
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
    return [reached, await limitCheck(dependencies), ...(await containerChecks(dependencies, image))]
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

async function containerChecks(dependencies: ContainerDependencies, image: string): Promise<Check[]> {
  const { engine } = dependencies
  const present = (await findImage(engine, image)) ? image : await findAnyImage(engine)
  const name = 'containers'
  if (present === undefined) {
    const detail = `not tried, the engine has no image yet: the first sandbox pulls ${image}`
    return [{ name, ok: true, required: false, detail }]
  }
  // It sorts before the ids of environments, so the sweep of orphans removes it should it be left behind.
  const id = `doctor-${crypto.randomUUID()}`
  try {
    const onProxy = () => {}
    const { createdWith, connection } = await createContainer(dependencies, id, { image: present, limits, onProxy })
    connection.close()
    return [
      { name, ok: true, required, detail: `start, here one of ${present}, and their guest answers` },
      seccomp(createdWith),
      quota(createdWith),
    ]
  } catch (error) {
    return [failed(name, error, undefined)]
  } finally {
    await removeContainer(engine, containerName(id))
  }
}

async function findAnyImage(engine: DockerEngine): Promise<string | undefined> {
  const images = objectsOf(await engine.call('GET', '/images/json'))
  const [id] = images.flatMap(({ Id }) => (typeof Id === 'string' ? [Id] : []))
  return id
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
