import { createMemory } from './async/shared-memory.ts'
import { bounds } from './bounds.ts'
import { createFailures } from './core/limits/failures.ts'
import type { Runtime } from './core/runtime.ts'
import { ApiError } from './errors.ts'
import { findAddress } from './http/address.ts'
import type { AppServer } from './http/app-server.ts'
import { createAuthenticationLog } from './http/authentication-log.ts'
import { createContext } from './http/context.ts'
import { findE2bTarget } from './http/e2b/target.ts'
import { createRouter, toRoutable } from './http/elysia.ts'
import { failureResponse } from './http/failure.ts'
import { createFindRoute } from './http/find-route.ts'
import { createInside, type InsideOf } from './http/mcp/inside.ts'
import { docsRoutes } from './http/openapi/docs.ts'
import { agentLogRoutes } from './http/routes/agent-logs.ts'
import { agentRoutes } from './http/routes/agents.ts'
import { allThreadRoutes } from './http/routes/all-threads.ts'
import { approvalRoutes } from './http/routes/approvals.ts'
import { auditRoutes } from './http/routes/audit.ts'
import { budgetRoutes } from './http/routes/budgets.ts'
import { chatRoutes } from './http/routes/chat.ts'
import { deployRoutes } from './http/routes/deploy.ts'
import { eventRoutes } from './http/routes/events.ts'
import { execRoutes } from './http/routes/exec.ts'
import { fileRoutes } from './http/routes/files.ts'
import { gitRoutes } from './http/routes/git.ts'
import { healthRoutes } from './http/routes/health.ts'
import { keyRoutes } from './http/routes/keys.ts'
import { mcpRoutes } from './http/routes/mcp.ts'
import { meRoutes } from './http/routes/me.ts'
import { metricsRoutes } from './http/routes/metrics.ts'
import { previewRoutes } from './http/routes/previews.ts'
import { processRoutes } from './http/routes/processes.ts'
import { rememberedRuleRoutes } from './http/routes/remembered-rules.ts'
import { runRoutes } from './http/routes/runs.ts'
import { sandboxRoutes } from './http/routes/sandboxes.ts'
import { scheduleRoutes } from './http/routes/schedules.ts'
import { secretRoutes } from './http/routes/secrets.ts'
import { serverRoutes } from './http/routes/server.ts'
import { sessionRoutes } from './http/routes/sessions.ts'
import { snapshotRoutes } from './http/routes/snapshots.ts'
import { terminalRoutes } from './http/routes/terminal.ts'
import { threadMessageRoutes } from './http/routes/thread-messages.ts'
import { threadRoutes } from './http/routes/threads.ts'
import { tokenRoutes } from './http/routes/tokens.ts'
import { toolResultRoutes } from './http/routes/tool-results.ts'
import { usageRoutes } from './http/routes/usage.ts'
import { webhookRoutes } from './http/routes/webhooks.ts'
import { createSockets, type Sockets } from './http/socket.ts'
import { admission } from './http/steps/admission.ts'
import { audited } from './http/steps/audited.ts'
import { bodyMemory } from './http/steps/body-memory.ts'
import { callerLimits } from './http/steps/caller-limits.ts'
import { commitChanges } from './http/steps/commit.ts'
import { consolePage } from './http/steps/console.ts'
import { cors } from './http/steps/cors.ts'
import { e2b } from './http/steps/e2b.ts'
import { failures } from './http/steps/failures.ts'
import { gateway } from './http/steps/gateway.ts'
import { observeRequests } from './http/steps/observe-requests.ts'
import { inOrder } from './http/steps/step.ts'
import { takeTurns } from './http/steps/take-turns.ts'
import { watchLoop } from './http/steps/watch-loop.ts'
import { createTraffic } from './http/traffic.ts'

export interface App {
  fetch(request: Request): Promise<Response>
}

/** The whole HTTP interface: the steps that each request takes, and the routes at their end. */
export function createApp(runtime: Runtime, server: AppServer = {}): App {
  const { config, db, log, loop, observers, audit } = runtime
  const bodies = createMemory({ bytes: bounds.bodiesBytes, freeBytes: bounds.smallBodyBytes })
  const traffic = createTraffic(config.requestsPerKey, server)
  const sockets = createSockets(server.upgrade, traffic.turn)
  const insideOf: InsideOf = request => inside(request)
  const routes = createRoutes(runtime, server, sockets, insideOf)
  const guard = {
    failures: createFailures(config.callerLimits['address.failures']),
    log: createAuthenticationLog(log),
  }

  const findRoute = createFindRoute(routes.routes.map(({ path }) => path))
  const handle = (request: Request) => Promise.resolve(routes.handle(request))
  const inside = createInside({ runtime, traffic, bodies, findRoute, handle })

  const answer = inOrder([
    takeTurns(traffic),
    watchLoop(loop),
    audited(audit),
    observeRequests(observers.observe, findRoute),
    gateway(runtime, traffic, server),
    e2b({ runtime, traffic, bodies, sockets, guard }),
    consolePage(),
    cors(config.origins),
    failures(log),
    admission(runtime, guard),
    bodyMemory(bodies),
    traffic.carry,
    // Once more: traffic counts the connection of a failed request as it does any other.
    failures(log),
    callerLimits(runtime, traffic),
    commitChanges(db),
    ({ request }) => routes.handle(request),
  ])

  return {
    async fetch(received) {
      const request = toRoutable(received)
      if (!request) return failureResponse(new ApiError('invalid_request', 'host: not valid'), log)
      const connection = {
        socketAddress: server.addressOf?.(received),
        forwardedFor: received.headers.get('x-forwarded-for'),
      }
      const address = findAddress(connection, config.trustedProxies)
      const e2b = findE2bTarget(request, config.previewDomain)
      return await answer(createContext(received, request, { address, e2b }))
    },
  }
}

function createRoutes(runtime: Runtime, server: AppServer, sockets: Sockets, insideOf: InsideOf) {
  const routes = createRouter(runtime.log)
    .use(healthRoutes(runtime, server))
    .use(sandboxRoutes(runtime))
    .use(snapshotRoutes(runtime))
    .use(secretRoutes(runtime))
    .use(execRoutes(runtime))
    .use(processRoutes(runtime))
    .use(terminalRoutes(runtime, sockets))
    .use(fileRoutes(runtime))
    .use(gitRoutes(runtime))
    .use(threadRoutes(runtime))
    .use(threadMessageRoutes(runtime))
    .use(allThreadRoutes(runtime))
    .use(runRoutes(runtime))
    .use(chatRoutes(runtime))
    .use(approvalRoutes(runtime))
    .use(toolResultRoutes(runtime))
    .use(tokenRoutes(runtime))
    .use(sessionRoutes(runtime))
    .use(keyRoutes(runtime))
    .use(eventRoutes(runtime))
    .use(serverRoutes(runtime))
    .use(webhookRoutes(runtime))
    .use(scheduleRoutes(runtime))
    .use(auditRoutes(runtime))
    .use(usageRoutes(runtime))
    .use(budgetRoutes(runtime))
    .use(meRoutes(runtime))
    .use(metricsRoutes(runtime))
    .use(deployRoutes(runtime))
    .use(agentRoutes(runtime))
    .use(agentLogRoutes(runtime))
    .use(rememberedRuleRoutes(runtime))
    .use(previewRoutes(runtime, sockets))
    .use(mcpRoutes({ runtime, insideOf }))
  return routes.use(docsRoutes(routes.routes, runtime.config.publicUrl))
}
