import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { DEFAULT_TEAM, ensureTeamWithEcho } from '../core/access/teams.ts'
import { readAgentFiles } from '../core/agents/agent-files.ts'
import { ensureCoder } from '../core/agents/default-agent.ts'
import { applyAgent } from '../core/agents/versions.ts'
import { type Config, ConfigError } from '../core/config.ts'
import { rememberEngines, rememberPlugin } from '../db/backends.ts'
import { sync } from '../db/lasting.ts'
import { findSetting, saveSetting } from '../db/settings.ts'
import { syncPath } from '../disk/lasting-files.ts'
import { wordsOf } from '../errors.ts'
import { assertBackend, getBackends } from './backend.ts'
import type { OpenRuntime } from './runtime.ts'

/** The setting with the boot id of the last server's machine. After another boot, the last writes may be lost. */
const LAST_BOOT = 'boot_id'

/**
 * Makes a new runtime ready for its first request: checks the backend, ends the runs that the last stop interrupted, and
 * saves the configured agents. Returns the id of the default team, which has these agents. Throws an error that says what
 * is missing.
 */
export async function prepare({ runtime, pluginFiles }: OpenRuntime): Promise<string> {
  const { config, db, backends, readyBackends, engines, gateway, runs, log } = runtime
  for (const [name, file] of pluginFiles) rememberPlugin(db, name, basename(file))
  const [backend, ...others] = getBackends(backends, config)
  await assertBackend(db, backend, config, pluginFiles.get(backend.name))
  // The server also starts when these checks fail.
  for (const { name } of others) void readyBackends.troubleOf(name)
  const engineNames = [...engines.keys()]
  for (const engine of Object.values(config.runtimes)) {
    if (!engines.has(engine))
      throw new ConfigError([`--runtime: there is no engine ${engine}; there are ${engineNames.join(', ')}`])
  }
  const bootId = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
  const interrupted = runs.recover(findSetting(db, LAST_BOOT) !== bootId)
  saveSetting(db, LAST_BOOT, bootId)
  if (interrupted > 0) log(`${interrupted} runs were interrupted by the last stop`)
  const team = ensureTeamWithEcho(db, DEFAULT_TEAM)
  rememberEngines(db, engineNames)
  for (const agent of await readAgents(config, engineNames)) applyAgent(db, team.id, agent)
  if (engines.has('ai-sdk')) ensureCoder(db, team.id, gateway.defaultModel, config.models.model !== undefined)
  // The names of the database's files, and all that was written so far.
  await syncPath(config.dataDirectory)
  await sync(db)
  return team.id
}

async function readAgents({ agentsDirectory }: Config, engines: readonly string[]) {
  try {
    return agentsDirectory === undefined ? [] : await readAgentFiles(agentsDirectory, engines)
  } catch (error) {
    throw new ConfigError([`--agents: ${wordsOf(error)}`])
  }
}
