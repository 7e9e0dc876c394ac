import type { Database } from 'bun:sqlite'
import { version } from '../../package.json'
import { type Config, ConfigError } from '../core/config.ts'
import { findPassedChecks, savePassedChecks } from '../db/backends.ts'
import { messageOf } from '../errors.ts'
import type { Backend, Check } from '../plugin-api/index.ts'

/** Throws a ConfigError when there is no backend of this name. */
export function getBackend(backends: ReadonlyMap<string, Backend>, name: string): Backend {
  const backend = backends.get(name)
  if (!backend) throw new ConfigError([`--backend: there is no backend ${name}`])
  return backend
}

/** Returns the backends that new sandboxes may go to, the default one first. Throws a ConfigError when one of them does not exist. */
export const getBackends = (
  backends: ReadonlyMap<string, Backend>,
  { backends: names }: Pick<Config, 'backends'>,
): [Backend, ...Backend[]] => {
  const [first = '', ...others] = names
  return [getBackend(backends, first), ...others.map(name => getBackend(backends, name))]
}

/**
 * Throws FailedChecks that say what the backend lacks. Checks that have passed are not repeated until the machine restarts:
 * they take as long as the rest of a start.
 */
export async function assertBackend(
  db: Database,
  backend: Backend,
  { nsjailPath, dockerRuntimes }: Config,
  pluginFile?: string,
): Promise<void> {
  const boot = await Bun.file('/proc/sys/kernel/random/boot_id').text()
  const plugin = pluginFile && `${pluginFile} ${Bun.file(pluginFile).lastModified}`
  const state = [version, boot.trim(), process.getuid?.(), nsjailPath, plugin, ...dockerRuntimes].join(' ').trim()
  if (findPassedChecks(db, backend.name) === state) return
  const failed = (await backend.check()).filter(isFatal)
  if (failed.length > 0) throw new FailedChecks(backend.name, failed)
  savePassedChecks(db, backend.name, state)
}

/** Lists what a backend needs and lacks. */
export class FailedChecks extends Error {
  readonly names: readonly string[]

  constructor(backend: string, failed: readonly Check[]) {
    super(`${failed.map(describeCheck).join('\n')}\nsee: threadbox doctor --backend ${backend}`)
    this.names = failed.map(({ name }) => name)
  }
}

/**
 * Runs the checks of a backend. When a backend cannot even run its checks, that is a failed check, and the checks of the others are still
 * shown.
 */
export const checksOf = (backend: Backend): Promise<Check[]> =>
  backend
    .check()
    .catch(error => [{ name: 'checks', ok: false, required: true, detail: messageOf(error) } satisfies Check])

/** True for a check that keeps the server from starting. */
export const isFatal = ({ ok, required }: Check): boolean => required && !ok

export const describeCheck = ({ name, ok, required, detail, remedy }: Check): string =>
  `${ok ? 'ok     ' : required ? 'FAILED ' : 'missing'}  ${name}: ${detail}${ok || !remedy ? '' : `\n         remedy: ${remedy}`}`
