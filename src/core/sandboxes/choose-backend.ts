import { ApiError } from '../../errors.ts'
import type { AgentSandbox } from '../../model/agent.ts'
import { classesOf, isAtLeast, strongestOf } from '../../model/isolation.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Backend, Environment, Isolation } from '../../plugin-api/index.ts'
import type { EnvironmentStart, Runtime } from '../runtime.ts'

type Backends = Pick<Runtime, 'config' | 'backends'>

/**
 * Chooses the backend of a new sandbox: the first of the server's that isolates at least as strongly as all of `asked`. Gives
 * `isolation` too where that backend isolates more weakly unless it is asked. Throws conflict that says what the server has, and
 * invalid_request for a runtime that the backend does not offer.
 */
export function chooseBackend(
  runtime: Backends,
  { runtime: chosen }: Pick<AgentSandbox, 'runtime'> = {},
  ...asked: readonly (Isolation | undefined)[]
): Pick<EnvironmentStart, 'backend' | 'isolation'> {
  const { config, backends } = runtime
  const least = strongestOf(...asked)
  const spec = chosen === undefined ? {} : { runtime: chosen }
  for (const name of config.backends) {
    const backend = backends.get(name)
    if (!backend) continue
    const isolation = classIn(backend, spec)
    if (least === undefined || isAtLeast(isolation, least)) return { backend: name }
    if (isAtLeast(classIn(backend, { ...spec, isolation: least }), least)) return { backend: name, isolation: least }
  }
  if (least === undefined) return { backend: config.backend }
  throw tooWeak(
    least,
    `${chosen === undefined ? '' : `the agent's runtime is ${chosen}, and `}this server has ${listClasses(runtime)}`,
  )
}

/** The isolation of what a backend makes of a spec. */
const classIn = (backend: Backend, spec: Pick<EnvironmentStart, 'runtime' | 'isolation'>): Isolation =>
  backend.isolationOf?.(spec) ?? backend.isolation

/** Throws conflict for an environment, or for what a backend makes of a snapshot, that isolates more weakly than asked for. */
export async function assertIsolation(
  runtime: Backends,
  place: { backend: string; environment?: Environment; snapshot?: string },
  ...asked: readonly (Isolation | undefined)[]
): Promise<void> {
  const least = strongestOf(...asked)
  if (least === undefined) return
  const { snapshots } = runtime.backends.get(place.backend) ?? {}
  const ofSnapshot = place.snapshot === undefined ? undefined : await snapshots?.isolationOf?.(place.snapshot)
  const isolation = ofSnapshot ?? isolationOf(runtime, place)
  if (isolation && isAtLeast(isolation, least)) return
  throw tooWeak(
    least,
    `${place.backend} has ${isolation ?? 'none that is known'}${ofSnapshot ? ' for it' : ''}, and this server has ${listClasses(runtime)}`,
  )
}

/** Throws sandbox_unavailable when no sandbox can be made on a backend of this server. */
export async function assertReady({ readyBackends, backends }: Runtime, name: string): Promise<void> {
  const trouble = await readyBackends.troubleOf(name)
  if (trouble === undefined) return
  const isolation = describeClasses(backends.get(name))
  throw new ApiError('sandbox_unavailable', `The backend ${name} (${isolation}) is not ready: ${trouble}.`)
}

/**
 * The isolation of an environment, or of a backend's environments in general. Undefined for a backend that this server does not
 * have.
 */
export const isolationOf = (
  { backends }: Pick<Runtime, 'backends'>,
  { backend, environment }: { backend: string; environment?: Environment },
): Isolation | undefined => environment?.isolation ?? backends.get(backend)?.isolation

/** The isolation that a sandbox was made with; null when it is not known. */
export const classOf = (
  runtime: Pick<Runtime, 'backends'>,
  sandbox: Pick<Sandbox, 'backend' | 'isolation'>,
): Isolation | null => sandbox.isolation ?? isolationOf(runtime, sandbox) ?? null

/** Names the classes of isolation that a backend has, in a few words. */
export const describeClasses = (backend: Backend | undefined): string =>
  backend ? classesOf(backend).join(' or ') : 'unknown'

const tooWeak = (least: Isolation, why: string) =>
  new ApiError('conflict', `isolation: ${least} or stronger is asked for; ${why}`, { field: 'isolation' })

const listClasses = ({ config, backends }: Backends): string =>
  config.backends.map(name => `${describeClasses(backends.get(name))} (${name})`).join(', ')
