import type { Database } from 'bun:sqlite'
import { findSetting, saveSetting } from './settings.ts'

const checksSetting = (backend: string) => `passed_checks_${backend}`
const pluginSetting = (backend: string) => `plugin_of_${backend}`

/** On what a backend's checks have passed. Undefined for one that was never the default on this data directory. */
export const findPassedChecks = (db: Database, backend: string): string | undefined =>
  findSetting(db, checksSetting(backend))

export const savePassedChecks = (db: Database, backend: string, state: string): void =>
  saveSetting(db, checksSetting(backend), state)

/** The name of the plugin's file that a backend came from when it was last here. Undefined for one of the build. */
export const findPlugin = (db: Database, backend: string): string | undefined => findSetting(db, pluginSetting(backend))

export function rememberPlugin(db: Database, backend: string, file: string): void {
  if (findPlugin(db, backend) !== file) saveSetting(db, pluginSetting(backend), file)
}

const ENGINES = 'engines'

/** The engines of the last server on this data directory, those of plugins included. */
export const findEngines = (db: Database): string[] =>
  findSetting(db, ENGINES)
    ?.split(',')
    .filter(name => name !== '') ?? []

export function rememberEngines(db: Database, names: readonly string[]): void {
  const text = names.join(',')
  if (findSetting(db, ENGINES) !== text) saveSetting(db, ENGINES, text)
}
