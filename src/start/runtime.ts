import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { DEFAULT_TEAM, ensureTeamWithEcho } from '../core/access/teams.ts'
import { readAgentFiles } from '../core/agents/agent-files.ts'
import { createBundles } from '../core/agents/bundles.ts'
import { ensureCoder } from '../core/agents/default-agent.ts'
import type { EventLoop, Runtime } from '../core/runtime.ts'
import { createEnvironments } from '../core/sandboxes/environments.ts'
import { createNetworks } from '../core/sandboxes/networks.ts'
import { saveAgent } from '../db/agents.ts'
import { rememberEngines, rememberPlugin } from '../db/backends.ts'
import { sync, syncEachSecond } from '../db/lasting.ts'
import { lockDirectory } from '../db/lock.ts'
import { assertKey } from '../db/seal.ts'
import { findSetting, saveSetting } from '../db/settings.ts'
import { syncPath } from '../disk/lasting-files.ts'
import { type OpenDiskSpace, openDiskSpace } from '../disk/space.ts'
import { createEgress } from '../egress/egress.ts'
import { wordsOf } from '../errors.ts'
import type { Backend, Engine, PluginContext } from '../plugin-api/index.ts'
import type { PluginFile } from '../plugin-loader/import-plugins.ts'
import { createRuns } from '../runs/registry.ts'
import { assertBackend, getBackend } from './backend.ts'
import { type Config, ConfigError } from './config.ts'
import { makeDirectory, openIn } from './data.ts'
import { createModelGateway } from './gateway.ts'

export interface Plugins {
  backends: ReadonlyMap<string, Backend>
  engines: ReadonlyMap<string, Engine>
  /** The files of those backends that are not of this build, by their names. */
  files: ReadonlyMap<string, string>
  external: readonly PluginFile[]
}

/** Makes the plugins of this build and those of the configuration. */
export type LoadPlugins = (config: Config, context: PluginContext) => Promise<Plugins>

export interface OpenRuntime {
  runtime: Runtime
  /** Of the default team, which has the configured agents. */
  teamId: string
  /** Lets go of everything; environments go on. Runs are to have ended. */
  close(): Promise<void>
}

/** The setting that says which start of the machine the last server ran in: a loss of power lies between two. */
const LAST_BOOT = 'boot_id'

/** All that use cases work with, on one data directory. Throws an error that says what is missing. */
export async function openRuntime(
  config: Config,
  load: LoadPlugins,
  log: Runtime['log'],
  loop?: EventLoop,
): Promise<OpenRuntime> {
  const { dataDirectory } = config
  const diskSpace = await openDisk(config, log)
  const db = await openIn(dataDirectory)
  const unreadable = assertKey(db)
  if (unreadable) log(unreadable)
  const lock = lockDirectory(dataDirectory)
  if (!lock) throw new Error(`--data-dir: another server runs on ${dataDirectory}`)
  const gateway = createModelGateway(db, config.models, process.env, log, config.publicUrl)
  const networks = createNetworks(db, config)
  const egress = createEgress({
    policyOf: networks.policyOf,
    ...(loop && { entered: loop.entered }),
    local: (request, environmentId) => gateway.handle(request, { environmentId }),
    log,
  })
  const { backends, engines, files } = await load(config, { dataDirectory, diskSpace, serveProxy: egress.serve, log })
  for (const [name, file] of files) rememberPlugin(db, name, basename(file))
  await assertBackend(db, getBackend(backends, config.backend), config, files.get(config.backend))
  for (const engine of Object.values(config.runtimes)) {
    if (!engines.has(engine))
      throw new ConfigError([`--runtime: there is no engine ${engine}; ${[...engines.keys()].join(', ')} are`])
  }
  const environments = createEnvironments(db, backends)
  const runs = createRuns(db, { log })
  const bundles = createBundles(db, dataDirectory)
  const bootId = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
  const interrupted = runs.recover(findSetting(db, LAST_BOOT) !== bootId)
  saveSetting(db, LAST_BOOT, bootId)
  if (interrupted > 0) log(`${interrupted} runs were interrupted by the last stop`)
  const team = ensureTeamWithEcho(db, DEFAULT_TEAM)
  rememberEngines(db, [...engines.keys()])
  for (const agent of await readAgents(config, [...engines.keys()])) saveAgent(db, team.id, agent)
  if (engines.has('ai-sdk')) ensureCoder(db, team.id, gateway.defaultModel, config.models.model !== undefined)
  // Its files' names, and what was done to it so far.
  await syncPath(dataDirectory)
  await sync(db)
  const syncing = syncEachSecond(db, error => log(`the database could not be synced: ${wordsOf(error)}`, 'error'))
  return {
    runtime: {
      config,
      db,
      backends,
      engines,
      environments,
      runs,
      bundles,
      gateway,
      networks,
      egress,
      diskSpace,
      log,
      ...(loop && { loop }),
    },
    teamId: team.id,
    async close() {
      egress.close()
      for (const each of engines.values()) await each.close?.()
      for (const each of backends.values()) await each.close()
      syncing[Symbol.dispose]()
      diskSpace.close()
      db.close()
      lock.release()
    },
  }
}

/** Before all else: on a full disk it makes the room that the rest of a start needs. */
async function openDisk({ dataDirectory, reserveMb }: Config, log: Runtime['log']): Promise<OpenDiskSpace> {
  await makeDirectory(dataDirectory)
  return openDiskSpace({ directory: dataDirectory, reserveMb, log })
}

async function readAgents({ agentsDirectory }: Config, engines: readonly string[]) {
  try {
    return agentsDirectory === undefined ? [] : await readAgentFiles(agentsDirectory, engines)
  } catch (error) {
    throw new ConfigError([`--agents: ${wordsOf(error)}`])
  }
}
