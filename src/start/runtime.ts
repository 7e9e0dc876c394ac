import { createBundles } from '../core/agents/bundles.ts'
import { onFree } from '../core/chat/run-next.ts'
import type { Config } from '../core/config.ts'
import { createSteerings } from '../core/queue/steering.ts'
import type { EventLoop, Log, Runtime } from '../core/runtime.ts'
import { createEnvironments } from '../core/sandboxes/environments.ts'
import { createNetworks } from '../core/sandboxes/networks.ts'
import { syncEachSecond } from '../db/lasting.ts'
import { lockDirectory } from '../db/lock.ts'
import { assertKey } from '../db/seal.ts'
import { openDiskSpace } from '../disk/space.ts'
import { createEgress } from '../egress/egress.ts'
import { wordsOf } from '../errors.ts'
import type { Plugin } from '../plugin-api/index.ts'
import { createRuns } from '../runs/registry.ts'
import { makeDirectory, openServerData } from './data.ts'
import { createModelGateway } from './gateway.ts'
import { loadPlugins } from './load-plugins.ts'

export interface RuntimeOptions {
  log: Log
  loop?: EventLoop
  /** Has the keys of model providers; without it, the environment of this process. */
  variables?: Readonly<Record<string, string | undefined>>
  /** Without it, the plugins of this build. */
  plugins?: readonly Plugin[]
}

export interface OpenRuntime {
  runtime: Runtime
  /** The file of each backend that comes from `--plugin`, by the backend's name. */
  pluginFiles: ReadonlyMap<string, string>
  /** Closes everything that was opened; environments go on. Call it once all runs have ended. */
  close(): Promise<void>
}

/**
 * Builds everything that use cases work with, on one data directory that no other server uses: the one place where the
 * parts meet. Throws an error that says what is missing.
 */
export async function createRuntime(config: Config, options: RuntimeOptions): Promise<OpenRuntime> {
  const { log, loop, variables = process.env, plugins } = options
  const { dataDirectory, reserveMb } = config
  await makeDirectory(dataDirectory)
  // Before all else: on a full disk it frees the space that the rest of a start needs.
  const diskSpace = await openDiskSpace({ directory: dataDirectory, reserveMb, log })
  const db = await openServerData(dataDirectory)
  const unreadable = assertKey(db)
  if (unreadable) log(unreadable)
  const lock = lockDirectory(dataDirectory)
  if (!lock) throw new Error(`--data-dir: another server runs on ${dataDirectory}`)
  const gateway = createModelGateway(db, config.models, variables, log, config.publicUrl)
  const networks = createNetworks(db, config)
  const egress = createEgress({
    policyOf: networks.policyOf,
    ...(loop && { entered: loop.entered }),
    local: (request, environmentId) => gateway.handle(request, { environmentId }),
    log,
  })
  const context = { dataDirectory, diskSpace, serveProxy: egress.serve, log }
  const { backends, engines, files: pluginFiles } = await loadPlugins(config, context, plugins)
  const syncing = syncEachSecond(db, error => log(`the database could not be synced: ${wordsOf(error)}`, 'error'))
  const runtime: Runtime = {
    ...{ config, db, diskSpace, log, backends, engines, gateway, networks, egress },
    environments: createEnvironments(db, backends),
    runs: createRuns(db, { log, onFree: threadId => onFree(runtime, threadId) }),
    steerings: createSteerings(),
    bundles: createBundles(db, dataDirectory),
    ...(loop && { loop }),
  }
  return {
    runtime,
    pluginFiles,
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
