import { createBundles } from '../core/agents/bundles.ts'
import { createAuditLog } from '../core/audit/audit-log.ts'
import { keepObservations } from '../core/audit/keep-observations.ts'
import { onFree } from '../core/chat/run-next.ts'
import type { Config } from '../core/config.ts'
import { createE2bLives } from '../core/e2b/lives.ts'
import { createEventFeed } from '../core/events/feed.ts'
import { createLimits } from '../core/limits/limits.ts'
import { createTeamLimits } from '../core/limits/team-limits.ts'
import { createMetrics } from '../core/metrics/metrics.ts'
import { createObservers } from '../core/observe/observers.ts'
import { createSteerings } from '../core/queue/steering.ts'
import type { EventLoop, Log, Runtime } from '../core/runtime.ts'
import { createEnvironments } from '../core/sandboxes/environments.ts'
import { keepDiskBytes } from '../core/sandboxes/keep-disk-bytes.ts'
import { createNetworks } from '../core/sandboxes/networks.ts'
import { createProcessEvents } from '../core/sandboxes/process-events.ts'
import { createSpares } from '../core/sandboxes/spares/spares.ts'
import { createUses } from '../core/sandboxes/uses.ts'
import { createScheduler } from '../core/schedules/scheduler.ts'
import { createTrust } from '../core/trust/trust.ts'
import { createAuthorityStore } from '../db/authority.ts'
import { syncEachSecond, useDurability } from '../db/lasting.ts'
import { indexInSteps } from '../db/late-index.ts'
import { lockDirectory } from '../db/lock.ts'
import { findSandboxOf } from '../db/sandboxes.ts'
import { assertKey } from '../db/seal.ts'
import { markUnfinishedSnapshotsRemoved } from '../db/snapshots.ts'
import { openDiskSpace } from '../disk/space.ts'
import { createEgress, type EgressParts } from '../egress/egress.ts'
import { createAuthority } from '../egress/secrets/authority.ts'
import { wordsOf } from '../errors.ts'
import type { GatewayOptions } from '../gateway/gateway.ts'
import type { Plugin } from '../plugin-api/index.ts'
import { createRuns } from '../runs/registry.ts'
import { assertBackend, getBackend } from './backend.ts'
import { makeDirectory, openServerData } from './data.ts'
import { createModelGateway } from './gateway.ts'
import { loadPlugins } from './load-plugins.ts'
import { createReadyBackends } from './ready-backends.ts'

export interface RuntimeOptions {
  log: Log
  loop?: EventLoop
  /** Returns the header `traceparent` for a model call. */
  traceparentOf?: GatewayOptions['traceparentOf']
  /** Has the keys of model providers; without it, the environment of this process. */
  variables?: Readonly<Record<string, string | undefined>>
  /**
   * Says how hosts are found and which authorities are trusted there. The defaults are the system's resolver and the authorities that
   * this process trusts.
   */
  reach?: Pick<EgressParts, 'resolve' | 'roots'>
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
  const { log, loop, variables = process.env, plugins, traceparentOf, reach } = options
  const { dataDirectory, reserveMb, walCheckpoint } = config
  await makeDirectory(dataDirectory)
  // Before all else: on a full disk it frees the space that the rest of a start needs.
  const diskSpace = await openDiskSpace({ directory: dataDirectory, reserveMb, log })
  const db = await openServerData(dataDirectory, { report: log, walCheckpoint })
  useDurability(db, config.durability)
  const unreadable = assertKey(db)
  if (unreadable) log(unreadable)
  const lock = lockDirectory(dataDirectory)
  if (!lock) throw new Error(`--data-dir: another server runs on ${dataDirectory}`)
  // The first round of `releaseSnapshots` removes the snapshots that a killed server was making.
  markUnfinishedSnapshotsRemoved(db)
  const observers = createObservers(log)
  const { observe } = observers
  const audit = createAuditLog(db, log)
  const keeping = keepObservations(observers, audit, environmentId => findSandboxOf(db, environmentId))
  const gateway = createModelGateway(db, config.models, variables, log, {
    publicUrl: config.publicUrl,
    observe,
    ...(traceparentOf && { traceparentOf }),
  })
  const networks = createNetworks(db, config)
  const authority = createAuthority(createAuthorityStore(db))
  const trust = createTrust({ secretsOf: networks.secretsOf, certificatePem: authority.certificatePem, log })
  const egress = createEgress({
    ...reach,
    policyOf: networks.policyOf,
    ...(loop && { entered: loop.entered }),
    decided: (environmentId, decision) => observe({ type: 'network.decided', environmentId, ...decision }),
    secretsOf: trust.secretsOf,
    authority,
    usedSecret: (environmentId, use) => observe({ type: 'secret.used', environmentId, ...use }),
    local: (request, environmentId) => gateway.handle(request, { environmentId }),
    log,
  })
  const { serve: serveProxy, serveDirect, answerName, serveSshAgent } = egress
  const context = { dataDirectory, diskSpace, serveProxy, serveDirect, answerName, serveSshAgent, log }
  const { backends, engines, files: pluginFiles } = await loadPlugins(config, context, plugins)
  const syncing = syncEachSecond(db, error => log(`the database could not be synced: ${wordsOf(error)}`, 'error'))
  const indexing = indexInSteps(db, error => log(`the search index could not be written: ${wordsOf(error)}`, 'error'))
  const uses = createUses(backends, { onDisk: keepDiskBytes(db) })
  const runtime: Runtime = {
    ...{ config, db, diskSpace, log, backends, engines, gateway, networks, egress },
    environments: createEnvironments(db, backends, uses, trust),
    readyBackends: createReadyBackends(
      config.backends.slice(1),
      name => assertBackend(db, getBackend(backends, name), config, pluginFiles.get(name)),
      log,
    ),
    trust,
    uses,
    limits: createLimits(config.callerLimits),
    teamLimits: createTeamLimits(db, config.callerLimits),
    spares: createSpares(() => runtime),
    runs: createRuns(db, { log, observe, onFree: threadId => onFree(runtime, threadId) }),
    steerings: createSteerings(),
    bundles: createBundles(db, dataDirectory),
    events: createEventFeed(db),
    processEvents: createProcessEvents(db, log),
    observers,
    schedules: createScheduler(() => runtime),
    e2b: createE2bLives(() => runtime),
    metrics: createMetrics({ observers, engines }, () => runtime),
    audit,
    ...(loop && { loop }),
  }
  const cutting = observers.subscribe(fact => fact.type === 'sandbox.deleted' && runtime.e2b.cut(fact.sandboxId))
  return {
    runtime,
    pluginFiles,
    async close() {
      await runtime.schedules.close()
      await runtime.e2b.close()
      cutting[Symbol.dispose]()
      await runtime.spares.close()
      uses.close()
      egress.close()
      runtime.events.close()
      runtime.processEvents.close()
      for (const each of engines.values()) await each.close?.()
      for (const each of backends.values()) await each.close()
      indexing[Symbol.dispose]()
      syncing[Symbol.dispose]()
      keeping[Symbol.dispose]()
      await audit.close()
      diskSpace.close()
      db.close()
      lock.release()
    },
  }
}
