import { ApiError } from '../../src/errors.ts'
import type { EnvironmentSpec, Isolation } from '../../src/plugin-api/index.ts'
import { objectOf } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'

/** Names by which engines know gVisor's runtime; `assertRuntime` checks that it is gVisor. */
const gvisor = /^(runsc|gvisor)(?![a-z])/

/** Returns how a runtime of this name isolates. Undefined stands for the engine's own runtime. */
export const isolationOf = (runtime: string | undefined): Isolation =>
  runtime !== undefined && gvisor.test(runtime) ? 'gvisor' : 'container'

/** No runtime of an engine is weaker than a container. */
const isEnough = (isolation: Isolation, least: Isolation | undefined): boolean =>
  least === undefined || least === 'namespaces' || least === 'container' || least === isolation

/**
 * The runtime of a new container: what was asked for, which must be among `offered`, else the first of these that isolates as strongly
 * as asked, else the first of all. Throws invalid_request.
 */
export function pickRuntime(
  offered: readonly string[],
  { runtime: asked, isolation: least }: Pick<EnvironmentSpec, 'runtime' | 'isolation'>,
): string | undefined {
  if (asked === undefined) return offered.find(each => isEnough(isolationOf(each), least)) ?? offered[0]
  if (offered.includes(asked)) return asked
  const list = offered.length === 0 ? 'it offers none' : `it offers ${offered.join(', ')}`
  throw new ApiError('invalid_request', `The runtime ${asked} is not one of this server's: ${list} (--docker-runtime).`)
}

/** Returns the arguments with which an engine starts the runtime of this name. */
export async function findRuntimeArgs(engine: DockerEngine, name: string): Promise<string[]> {
  const { Runtimes } = objectOf(await engine.call('GET', '/info')) ?? {}
  const args = objectOf(objectOf(Runtimes)?.[name])?.runtimeArgs
  return Array.isArray(args) ? args.map(String) : []
}

/** Throws sandbox_unavailable when an engine has no runtime of this name, or when its name says gVisor and it is not. */
export async function assertRuntime(engine: DockerEngine, name: string): Promise<void> {
  const { Runtimes } = objectOf(await engine.call('GET', '/info')) ?? {}
  const runtimes = objectOf(Runtimes) ?? {}
  const { path = '', runtimeType = '' } = objectOf(runtimes[name]) ?? {}
  if (!Object.hasOwn(runtimes, name)) {
    const list = Object.keys(runtimes).join(', ')
    throw new ApiError('sandbox_unavailable', `The Docker engine has no runtime ${name}; it has ${list}.`)
  }
  if (isolationOf(name) !== 'gvisor' || /runsc/.test(`${String(path).split('/').at(-1)} ${runtimeType}`)) return
  throw new ApiError(
    'sandbox_unavailable',
    `The engine's runtime ${name} is ${path || runtimeType}, which is not gVisor.`,
  )
}
