import { version } from '../../package.json'
import { createApp } from '../app.ts'
import { settlesWithin } from '../async/timeout.ts'
import { removeUnusedBundles } from '../core/agents/bundles.ts'
import { sweepWaiting } from '../core/approvals/expire.ts'
import { startAudit } from '../core/audit/housekeeping.ts'
import { runQueues } from '../core/chat/run-next.ts'
import { purgeOldEvents } from '../core/events/events.ts'
import { noteStops } from '../core/sandboxes/note-stops.ts'
import { releaseSnapshots } from '../core/sandboxes/release-snapshots.ts'
import { createTeamRemoval } from '../core/sandboxes/remove-teams.ts'
import { findLastStart } from '../core/sandboxes/spares/last-start.ts'
import { removeExpired, removeOldStrays, removeOrphans } from '../core/sandboxes/sweep.ts'
import { startWebhooks } from '../core/webhooks/sender.ts'
import { purgeOldDeliveries } from '../core/webhooks/webhooks.ts'
import { createPublicFetch } from '../egress/public-fetch.ts'
import { resolveBySystem } from '../egress/resolve.ts'
import { ApiError, messageOf } from '../errors.ts'
import { answerOf } from '../http/socket.ts'
import { readConfig } from '../start/config.ts'
import { openLog } from '../start/log.ts'
import { prepare } from '../start/prepare.ts'
import { createRuntime } from '../start/runtime.ts'
import type { Given } from './command-line.ts'
import { listen } from './listen/listen.ts'
import { listenForMetrics } from './metrics-listener.ts'
import { releaseCode } from './release-code.ts'
import { withRequestLog } from './request-log.ts'
import { startBackups } from './scheduled-backups.ts'
import { createServiceManager } from './service/notify.ts'
import { showKey } from './show-key.ts'
import { startSummary } from './start-summary.ts'
import { openTelemetry } from './telemetry.ts'
import { findHold } from './upgrade/hold.ts'
import { prepareRenewal, RENEW_SIGNAL } from './upgrade/renew.ts'
import { createWatchdog } from './watchdog.ts'

const HOUSEKEEPING_MS = 10_000
/** How late the event of a stopped sandbox may be. */
const STOPS_MS = 1000
/** How long a stop waits for the sweep that the start began. The next start does what is left. */
const SWEPT_WITHIN_MS = 3000
/** How long readers have to take the rest of their streams once all runs have ended. */
const FLUSH_MS = 1000

/**
 * Runs until SIGTERM or SIGINT, or until an upgrade makes it start anew. Throws a ConfigError, or an error that says what
 * prevents the start.
 *
 * Over 100 lines: the steps of a start and of a stop, in their order.
 */
export async function serve({ settings }: Given): Promise<void> {
  const renew = prepareRenewal()
  const config = await readConfig(settings, process.env)
  const { log, learn } = openLog(config)
  const manager = createServiceManager(process.env)
  const loop = createWatchdog(manager.alive)
  const telemetry = await openTelemetry(process.env)
  const opened = await createRuntime(config, { log, loop, traceparentOf: telemetry.traceparentOf })
  const teamId = await prepare(opened)
  const { runtime, close } = opened
  learn(runtime)
  telemetry.start(runtime)

  // Before anything announces that the server runs: a signal after that must stop it in order.
  let lastSignal: NodeJS.Signals | undefined
  const stopped = new Promise<true>(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT', RENEW_SIGNAL] as const)
      process.once(signal, () => {
        lastSignal = signal
        resolve(true)
      })
  })
  let isClosing = false
  // A caller with a key may be silent for as long as a command or a stream takes.
  const app = createApp(runtime, {
    timeout: (request, seconds) => listener.serverOf(request).timeout(request, seconds),
    nameOf: request => {
      const { address, port } = listener.serverOf(request).requestIP(request) ?? {}
      return port === undefined ? undefined : `${address} ${port}`
    },
    keyShown: request => listener.keyShown(request),
    addressOf: request => listener.serverOf(request).requestIP(request)?.address,
    isClosing: () => isClosing,
    upgrade: (request, data, headers) =>
      listener.serverOf(request).upgrade(request, { data, ...(headers && { headers }) }),
  })
  const hold = findHold(config.dataDirectory)
  const answer = async (request: Request) => {
    const refused = hold.refuse(request)
    if (refused) return refused
    if (isClosing && request.method !== 'GET') {
      const refusal = new ApiError('shutting_down', 'The server is shutting down.')
      return Response.json(refusal, { status: refusal.status })
    }
    return answerOf(await app.fetch(request))
  }
  const listener = listen(config, log, config.logLevel === 'debug' ? withRequestLog(log, answer) : answer)
  const figures = config.metricsAddress && listenForMetrics(runtime, config.metricsAddress)
  loop.start(config.watchdogMs, config.log)
  // The build's policy leaves code that only a start runs uncompiled; from here on, code is compiled as usual.
  Bun.unsafe.setJITPolicy(1)
  manager.ready()
  console.log(`threadbox listening on ${listener.origin}`)
  if (figures) console.log(`metrics on ${figures.url.origin}/metrics`)
  for (const line of startSummary(runtime, teamId)) console.log(line)
  showKey(runtime, teamId, listener.origin)

  if (await Promise.race([stopped, hold.over])) {
    // The upgrade was given up before this server accepted anything.
    await listener.stop(true)
    await figures?.stop(true)
    await telemetry.close()
    await close()
    return loop.close()
  }
  void sweepWaiting(runtime)
  runQueues(runtime)
  const swept = removeOrphans(runtime)
    .then(() => releaseSnapshots(runtime))
    .then(() => removeOldStrays(runtime))
  void removeUnusedBundles(runtime)
  // When the first spares are ready, the code that only a start runs is not needed any more.
  void runtime.spares.start(findLastStart(runtime)).then(releaseCode)
  const removeTeams = createTeamRemoval(runtime)
  void removeTeams()
  const housekeeping = setInterval(() => {
    void removeExpired(runtime)
    void removeTeams()
    void removeOldStrays(runtime)
    void purgeOldEvents(runtime)
    void purgeOldDeliveries(runtime)
    void sweepWaiting(runtime)
    runQueues(runtime)
    runtime.runs.purge(new Date()).catch(error => log(`purge: ${messageOf(error)}`, 'error'))
  }, HOUSEKEEPING_MS)

  const backups = startBackups(runtime, process.env)
  const auditing = startAudit(runtime, { version })
  const webhooks = startWebhooks(runtime, createPublicFetch(config.webhookPrivate, resolveBySystem))
  runtime.schedules.start()
  runtime.e2b.wake()
  const looking = setInterval(() => void noteStops(runtime), STOPS_MS)

  await stopped
  isClosing = true
  if (lastSignal !== RENEW_SIGNAL) manager.stopping()
  clearInterval(housekeeping)
  clearInterval(looking)
  await Promise.all([webhooks.close(), runtime.schedules.close(), runtime.e2b.close(), backups.close()])
  const emptied = runtime.spares.close()
  await runtime.runs.close(config.graceMs)
  await Promise.race([listener.stop(), Bun.sleep(FLUSH_MS)])
  await Promise.all([listener.stop(true), figures?.stop(true)])
  await telemetry.close()
  await emptied
  await settlesWithin(SWEPT_WITHIN_MS, swept)
  await auditing.close()
  await close()
  loop.close()
  // A server that gets SIGTERM while it ends for an upgrade does not start again.
  if (lastSignal === RENEW_SIGNAL) renew()
}
