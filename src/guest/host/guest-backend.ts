import { once } from '../../async/once.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Backend, EnvironmentSpec } from '../../plugin-api/index.ts'
import { startHousekeeping } from './housekeeping.ts'
import type { KeptEnvironment } from './kept-environment.ts'
import type { OutletContext } from './outlets.ts'

/** Options of every backend whose environments run our guest. */
export interface GuestBackendOptions extends OutletContext {
  dataDirectory: string
  /** Environments that are not used for this long are paused. Default one hour; 0 never pauses. */
  idleMs?: number
  /** The executable that is the guest inside; default this process's own. */
  executable?: string
  log(line: string): void
}

const DEFAULT_IDLE_MS = 3_600_000

/** Ids become names of files, mounts, cgroups and containers. */
export const isSafeId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/.test(id)

export interface PreparedBackend {
  /** Environments that may run since a former server: they are joined beside the first uses. */
  running: readonly KeptEnvironment[]
  /** Ends what `prepare` has begun. */
  close?(): Promise<unknown>
}

export interface GuestBackendParts<P extends PreparedBackend> {
  /** Every environment that exists. `prepare` and `create` add to it; an environment that is removed leaves it. */
  environments: ReadonlyMap<string, KeptEnvironment>
  /** Finds what exists. Called with the first use, and again after it rejected. */
  prepare(): Promise<P>
  /** Creates an environment whose id is safe and free. A rejected call leaves nothing behind. */
  create(spec: EnvironmentSpec, prepared: P): Promise<KeptEnvironment>
  /** True when an environment that runs, and was made as a spare, is what `create` would make of this spec now. */
  claim(environment: KeptEnvironment, spec: EnvironmentSpec): Promise<boolean>
  /** The error that a caller sees when `create` rejects. */
  toCreateError(error: unknown): ApiError
  /** Called when an environment that nobody waits for could not be looked after. */
  onFailure(environmentId: string, error: unknown): void
  /** More work for each round of housekeeping. Never rejects. */
  lookAfter?(): Promise<void>
}

/**
 * The part of a backend that is the same wherever its guests live: an environment is created by one call at a time, found again
 * after a restart, looked after while nobody uses it, and released at the end.
 */
export function createGuestBackend<P extends PreparedBackend>(
  { idleMs = DEFAULT_IDLE_MS, log }: Pick<GuestBackendOptions, 'idleMs' | 'log'>,
  { environments, prepare, create, claim, toCreateError, onFailure, lookAfter }: GuestBackendParts<P>,
): Required<Pick<Backend, 'create' | 'claimSpare' | 'open' | 'troubleOf' | 'listRunning' | 'list' | 'close'>> {
  const creating = new Map<string, Promise<KeptEnvironment>>()
  const spares = new WeakSet<KeptEnvironment>()
  let isClosing = false
  let started: ReturnType<typeof start> | undefined

  const start = once(async () => {
    const prepared = await prepare()
    const endHousekeeping = startHousekeeping({
      environments: () => environments.values(),
      isSpare: environment => spares.has(environment),
      idleMs,
      onFailure,
      ...(lookAfter && { also: lookAfter }),
    })
    return { prepared, endHousekeeping, rejoined: rejoin(prepared.running) }
  })
  const ready = async () => {
    started = start()
    return (await started).prepared
  }

  /** One after the other; a guest that does not answer is left to its environment's next use. */
  const rejoin = async (running: readonly KeptEnvironment[]) => {
    for (const environment of running) {
      if (!isClosing) await environment.rejoin().catch(error => log(`${environment.id}: ${messageOf(error)}`))
    }
  }

  const exists = () => new ApiError('conflict', 'The sandbox exists already.')
  const createReady = async (spec: EnvironmentSpec) => {
    const prepared = await ready()
    if (environments.has(spec.id)) throw exists()
    const environment = await create(spec, prepared)
    if (spec.isSpare) spares.add(environment)
    return environment
  }

  return {
    async create(spec) {
      if (!isSafeId(spec.id)) throw new Error('the environment id is not safe as a name')
      if (creating.has(spec.id)) throw exists()
      const made = createReady(spec).catch(error => {
        throw toCreateError(error)
      })
      creating.set(spec.id, made)
      return made.finally(() => creating.delete(spec.id))
    },

    async claimSpare(spec) {
      const environment = environments.get(spec.id)
      if (!environment?.isConnected || !spares.delete(environment)) return false
      return await claim(environment, spec)
    },

    async open(id) {
      await ready()
      const environment = environments.get(id)
      return environment?.isDestroyed ? undefined : environment
    },

    troubleOf: id => environments.get(id)?.trouble,

    listRunning: () => [...environments.values()].filter(({ isConnected }) => isConnected).map(({ id }) => id),

    async list() {
      await ready()
      return [...environments.values()].filter(environment => !environment.isDestroyed).map(({ id }) => id)
    },

    async close() {
      isClosing = true
      await Promise.allSettled(creating.values())
      const parts = await started?.catch(() => undefined)
      await Promise.all([parts?.endHousekeeping(), parts?.prepared.close?.(), parts?.rejoined])
      await Promise.all([...environments.values()].map(environment => environment.release()))
    },
  }
}
