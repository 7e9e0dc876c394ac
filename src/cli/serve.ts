import { createApp } from '../app.ts'
import { createKey } from '../core/access/keys.ts'
import { DEFAULT_TEAM } from '../core/access/teams.ts'
import { removeUnusedBundles } from '../core/agents/bundles.ts'
import { sweepWaiting } from '../core/approvals/expire.ts'
import { runQueues } from '../core/chat/run-next.ts'
import type { Config } from '../core/config.ts'
import { removeExpired, removeOldStrays, removeOrphans } from '../core/sandboxes/sweep.ts'
import { countKeys } from '../db/keys.ts'
import { ApiError, messageOf } from '../errors.ts'
import { answerOf, type SocketHandlers, websocket } from '../http/socket.ts'
import { readConfig } from '../start/config.ts'
import { createLog } from '../start/log.ts'
import { prepare } from '../start/prepare.ts'
import { createRuntime } from '../start/runtime.ts'
import type { Given } from './command-line.ts'
import { keepConnectionsAlive } from './keep-alive.ts'
import { withRequestLog } from './request-log.ts'
import { createServiceManager } from './service/notify.ts'
import { keyHint, startSummary } from './start-summary.ts'
import { createWatchdog } from './watchdog.ts'

const HOUSEKEEPING_MS = 10_000
/** Connections without a valid key are closed after this silence, because they could use up the descriptors. */
const STRANGER_IDLE_SECONDS = 10
/** How long readers have to take the rest of their streams once all runs have ended. */
const FLUSH_MS = 1000

/** Runs until SIGTERM or SIGINT. Throws a ConfigError, or an error that says what keeps it from starting. */
export async function serve({ settings }: Given): Promise<void> {
  const config = await readConfig(settings, process.env)
  const log = createLog(config.logLevel)
  const manager = createServiceManager(process.env)
  const loop = createWatchdog(manager.alive)
  const opened = await createRuntime(config, { log, loop })
  const teamId = await prepare(opened)
  const { runtime, close } = opened
  const { db } = runtime

  // Before anything announces that the server runs: a signal after that must stop it in order.
  const stopped = new Promise(resolve => {
    process.once('SIGTERM', resolve)
    process.once('SIGINT', resolve)
  })
  let isClosing = false
  // A caller with a key may be silent for as long as a command or a stream takes.
  const app = createApp(runtime, {
    timeout: (request, seconds) => server.timeout(request, seconds),
    nameOf: request => {
      const { address, port } = server.requestIP(request) ?? {}
      return port === undefined ? undefined : `${address} ${port}`
    },
    addressOf: request => server.requestIP(request)?.address,
    upgrade: (request, data, headers) => server.upgrade(request, { data, ...(headers && { headers }) }),
  })
  const answer = async (request: Request) => {
    if (isClosing && request.method !== 'GET') {
      const refusal = new ApiError('shutting_down', 'The server is shutting down.')
      return Response.json(refusal, { status: refusal.status })
    }
    return answerOf(await app.fetch(request))
  }
  const server = listen(config, config.logLevel === 'debug' ? withRequestLog(log, answer) : answer)
  if (!keepConnectionsAlive(server.port ?? 0)) log('connections have no keep-alive: /proc does not show them')
  loop.start(config.watchdogMs)
  manager.ready()
  console.log(`threadbox listening on ${server.url.origin}`)
  for (const line of startSummary(runtime, teamId)) console.log(line)
  if (config.apiKey || countKeys(db) > 0) console.log(keyHint(config.dataDirectory))
  else {
    const { key } = createKey(db, { team: DEFAULT_TEAM, name: 'first' })
    console.log(`API key of the team ${DEFAULT_TEAM}, shown only now: ${key}`)
  }

  void sweepWaiting(runtime)
  runQueues(runtime)
  void removeOrphans(runtime).then(() => removeOldStrays(runtime))
  void removeUnusedBundles(runtime)
  const housekeeping = setInterval(() => {
    void removeExpired(runtime)
    void removeOldStrays(runtime)
    void sweepWaiting(runtime)
    runQueues(runtime)
    runtime.runs.purge(new Date()).catch(error => log(`purge: ${messageOf(error)}`, 'error'))
  }, HOUSEKEEPING_MS)

  await stopped
  isClosing = true
  manager.stopping()
  clearInterval(housekeeping)
  await runtime.runs.close(config.graceMs)
  await Promise.race([server.stop(), Bun.sleep(FLUSH_MS)])
  await server.stop(true)
  await close()
  loop.close()
}

function listen({ host, port }: Config, fetch: (request: Request) => Promise<Response | undefined>) {
  try {
    return Bun.serve<SocketHandlers>({
      websocket,
      hostname: host,
      port,
      idleTimeout: STRANGER_IDLE_SECONDS,
      reusePort: false,
      // Otherwise Bun prints a stack when a response's body fails; the client sees that the connection ends.
      development: false,
      // JSON bodies have their own limit; files may have any size.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      fetch,
    })
  } catch (error) {
    throw new Error(`--host, --port: cannot listen on ${host}:${port}: ${messageOf(error)}`)
  }
}
