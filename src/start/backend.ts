import type { Database } from 'bun:sqlite'
import { version } from '../../package.json'
import { type Config, ConfigError } from '../core/config.ts'
import { findPassedChecks, savePassedChecks } from '../db/backends.ts'
import type { Backend, Check } from '../plugin-api/index.ts'

/** The backend that new sandboxes go to. Throws a ConfigError when there is no backend of this name. */
export function getBackend(backends: ReadonlyMap<string, Backend>, name: string): Backend {
  const backend = backends.get(name)
  if (!backend) throw new ConfigError([`--backend: there is no backend ${name}`])
  return backend
}

/**
 * Throws an error that says what the backend lacks. Checks that have passed are not repeated until the machine restarts:
 * they take as long as the rest of a start.
 */
export async function assertBackend(
  db: Database,
  backend: Backend,
  { nsjailPath }: Config,
  pluginFile?: string,
): Promise<void> {
  const boot = await Bun.file('/proc/sys/kernel/random/boot_id').text()
  const plugin = pluginFile && `${pluginFile} ${Bun.file(pluginFile).lastModified}`
  const state = [version, boot.trim(), process.getuid?.(), nsjailPath, plugin].join(' ').trim()
  if (findPassedChecks(db, backend.name) === state) return
  const failed = (await backend.check()).filter(isFatal)
  if (failed.length > 0) throw new Error(`${failed.map(describeCheck).join('\n')}\nsee: threadbox doctor`)
  savePassedChecks(db, backend.name, state)
}

/** True for a check that keeps the server from starting. */
export const isFatal = ({ ok, required }: Check): boolean => required && !ok

export const describeCheck = ({ name, ok, required, detail, remedy }: Check): string =>
  `${ok ? 'ok     ' : required ? 'FAILED ' : 'missing'}  ${name}: ${detail}${ok || !remedy ? '' : `\n         remedy: ${remedy}`}`
