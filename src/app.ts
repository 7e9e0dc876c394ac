import { createMemory } from './async/shared-memory.ts'
import { bounds } from './bounds.ts'
import type { Runtime } from './core/runtime.ts'
import { ApiError } from './errors.ts'
import type { AppServer } from './http/app-server.ts'
import { createContext } from './http/context.ts'
import { createRouter, toRoutable } from './http/elysia.ts'
import { failureResponse } from './http/failure.ts'
import { docsRoutes } from './http/openapi/docs.ts'
import { agentLogRoutes } from './http/routes/agent-logs.ts'
import { agentRoutes } from './http/routes/agents.ts'
import { allThreadRoutes } from './http/routes/all-threads.ts'
import { approvalRoutes } from './http/routes/approvals.ts'
import { chatRoutes } from './http/routes/chat.ts'
import { deployRoutes } from './http/routes/deploy.ts'
import { execRoutes } from './http/routes/exec.ts'
import { fileRoutes } from './http/routes/files.ts'
import { gitRoutes } from './http/routes/git.ts'
import { healthRoutes } from './http/routes/health.ts'
import { meRoutes } from './http/routes/me.ts'
import { previewRoutes } from './http/routes/previews.ts'
import { processRoutes } from './http/routes/processes.ts'
import { rememberedRuleRoutes } from './http/routes/remembered-rules.ts'
import { runRoutes } from './http/routes/runs.ts'
import { sandboxRoutes } from './http/routes/sandboxes.ts'
import { terminalRoutes } from './http/routes/terminal.ts'
import { threadMessageRoutes } from './http/routes/thread-messages.ts'
import { threadRoutes } from './http/routes/threads.ts'
import { tokenRoutes } from './http/routes/tokens.ts'
import { toolResultRoutes } from './http/routes/tool-results.ts'
import { usageRoutes } from './http/routes/usage.ts'
import { createSockets, type Sockets } from './http/socket.ts'
import { admission } from './http/steps/admission.ts'
import { bodyMemory } from './http/steps/body-memory.ts'
import { commitChanges } from './http/steps/commit.ts'
import { cors } from './http/steps/cors.ts'
import { failures } from './http/steps/failures.ts'
import { gateway } from './http/steps/gateway.ts'
import { inOrder } from './http/steps/step.ts'
import { watchLoop } from './http/steps/watch-loop.ts'
import { createTraffic } from './http/traffic.ts'

export interface App {
  fetch(request: Request): Promise<Response>
}

/** The whole HTTP interface: the steps that each request takes, and the routes at their end. */
export function createApp(runtime: Runtime, server: AppServer = {}): App {
  const { config, db, log, loop } = runtime
  const bodies = createMemory({ bytes: bounds.bodiesBytes, freeBytes: bounds.smallBodyBytes })
  const traffic = createTraffic(config.requestsPerKey, server)
  const routes = createRoutes(runtime, createSockets(server.upgrade, traffic.turn))

  const answer = inOrder([
    watchLoop(loop),
    gateway(runtime, traffic, server),
    cors(config.origins),
    failures(log),
    admission(runtime, server),
    bodyMemory(bodies),
    traffic.carry,
    // Once more: traffic counts the connection of a failed request as it does any other.
    failures(log),
    commitChanges(db),
    ({ request }) => routes.handle(request),
  ])

  return {
    async fetch(received) {
      const request = toRoutable(received)
      if (!request) return failureResponse(new ApiError('invalid_request', 'host: not valid'), log)
      return await answer(createContext(received, request))
    },
  }
}

function createRoutes(runtime: Runtime, sockets: Sockets) {
  const routes = createRouter(runtime.log)
    .use(healthRoutes(runtime))
    .use(sandboxRoutes(runtime))
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
    .use(usageRoutes(runtime))
    .use(meRoutes(runtime))
    .use(deployRoutes(runtime))
    .use(agentRoutes(runtime))
    .use(agentLogRoutes(runtime))
    .use(rememberedRuleRoutes(runtime))
    .use(previewRoutes(runtime, sockets))
  return routes.use(docsRoutes(routes.routes, runtime.config.publicUrl))
}
