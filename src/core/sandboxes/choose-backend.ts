import { ApiError } from '../../errors.ts'
import { isAtLeast, strongestOf } from '../../model/isolation.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Environment, Isolation } from '../../plugin-api/index.ts'
import type { Runtime } from '../runtime.ts'

type Backends = Pick<Runtime, 'config' | 'backends'>

/**
 * Chooses the backend of a new sandbox: the first of the server's that isolates at least as strongly as all of `asked`. Throws
 * conflict that says what the server has.
 */
export function chooseBackend(runtime: Backends, ...asked: readonly (Isolation | undefined)[]): string {
  const { config, backends } = runtime
  const least = strongestOf(...asked)
  if (least === undefined) return config.backend
  const name = config.backends.find(each => {
    const backend = backends.get(each)
    return backend && isAtLeast(backend.isolation, least)
  })
  if (name === undefined) throw tooWeak(least, `this server has ${listClasses(runtime)}`)
  return name
}

/** Throws conflict for a backend, or one of its environments, that isolates more weakly than asked for. */
export function assertIsolation(
  runtime: Backends,
  place: { backend: string; environment?: Environment },
  ...asked: readonly (Isolation | undefined)[]
): void {
  const least = strongestOf(...asked)
  const isolation = isolationOf(runtime, place)
  if (least === undefined || (isolation && isAtLeast(isolation, least))) return
  throw tooWeak(
    least,
    `${place.backend} has ${isolation ?? 'none that is known'}, and this server has ${listClasses(runtime)}`,
  )
}

/** Throws sandbox_unavailable when no sandbox can be made on a backend of this server. */
export async function assertReady({ readyBackends, backends }: Runtime, name: string): Promise<void> {
  const trouble = await readyBackends.troubleOf(name)
  if (trouble === undefined) return
  const isolation = backends.get(name)?.isolation ?? 'unknown'
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

const tooWeak = (least: Isolation, why: string) =>
  new ApiError('conflict', `isolation: ${least} or stronger is asked for; ${why}`, { field: 'isolation' })

const listClasses = ({ config, backends }: Backends): string =>
  config.backends.map(name => `${backends.get(name)?.isolation ?? 'unknown'} (${name})`).join(', ')
