import type { Database } from 'bun:sqlite'
import { version } from '../../package.json'
import { type Config, ConfigError } from '../config.ts'
import { findSetting, saveSetting } from '../db/settings.ts'
import type { Backend, Check } from '../plugin.ts'

/** The backend that new sandboxes go to. Throws a ConfigError when this build has none of that name. */
export function getBackend(backends: ReadonlyMap<string, Backend>, name: string): Backend {
  const backend = backends.get(name)
  if (!backend) throw new ConfigError([`--backend: there is no backend ${name}`])
  return backend
}

/**
 * Throws with what the backend lacks. What has passed is not tried again until the machine restarts: the probes take as
 * long as all the rest of a start.
 */
export async function assertBackend(db: Database, backend: Backend, config: Config): Promise<void> {
  const boot = await Bun.file('/proc/sys/kernel/random/boot_id').text()
  const state = [version, boot.trim(), process.getuid?.(), config.nsjailPath].join(' ')
  const setting = `passed_checks_${backend.name}`
  if (findSetting(db, setting) === state) return
  const failed = (await backend.check()).filter(isFatal)
  if (failed.length > 0) throw new Error(`${failed.map(describeCheck).join('\n')}\nsee: threadbox doctor`)
  saveSetting(db, setting, state)
}

/** One that keeps the server from starting. */
export const isFatal = ({ ok, required }: Check): boolean => required && !ok

export const describeCheck = ({ name, ok, required, detail, remedy }: Check): string =>
  `${ok ? 'ok     ' : required ? 'FAILED ' : 'missing'}  ${name}: ${detail}${ok || !remedy ? '' : `\n         remedy: ${remedy}`}`
