import type { Memory } from '../../async/shared-memory.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { RequestContext } from '../context.ts'
import type { Sockets } from '../socket.ts'
import type { Guard } from '../steps/admission.ts'
import { bodyMemory } from '../steps/body-memory.ts'
import { callerLimits } from '../steps/caller-limits.ts'
import { commitChanges } from '../steps/commit.ts'
import { cors } from '../steps/cors.ts'
import { inOrder, type Step } from '../steps/step.ts'
import type { Traffic } from '../traffic.ts'
import { admitControl, admitPort } from './admit.ts'
import { createControl } from './control.ts'
import { refuseProcedure } from './envd/handle.ts'
import { createEnvd } from './envd.ts'
import { e2bFailure } from './failure.ts'
import { servePort } from './port.ts'
import { ENVD_PORT } from './target.ts'

export interface E2bParts {
  runtime: Runtime
  traffic: Traffic
  bodies: Memory
  sockets: Sockets
  guard: Guard
}

/** The steps of a request of E2B's clients, which replace those of the API. */
export function createE2bSteps({
  runtime,
  traffic,
  bodies,
  sockets,
  guard,
}: E2bParts): (context: RequestContext) => Promise<Response> {
  const { config, db, log } = runtime
  const router = createControl(runtime)
  const answerEnvd = createEnvd()
  const failures: Step = async ({ id, request, e2b }, next) => {
    try {
      return await next()
    } catch (error) {
      const answer = await e2bFailure(error, log, id)
      const isEnvd = e2b?.kind === 'port' && e2b.port === ENVD_PORT
      return (isEnvd ? refuseProcedure(request, error) : undefined) ?? answer
    }
  }
  const admitted = [bodyMemory(bodies), traffic.carry, failures, callerLimits(runtime, traffic)]
  const open = cors(config.origins)
  const control = inOrder([
    ...[open, failures, admitControl(runtime, guard), ...admitted, commitChanges(db)],
    ({ request }) => router.handle(request),
  ])
  const port = inOrder([
    failures,
    admitPort(runtime, guard),
    ...admitted,
    context => servePort(runtime, sockets, answerEnvd, context),
  ])
  // A page that has a sandbox's token may read its files. Nothing is added to the answers of a sandbox's own programs.
  const envd = inOrder([open, context => port(context)])
  return context => {
    if (context.e2b?.kind === 'control') return control(context)
    return context.e2b?.port === ENVD_PORT ? envd(context) : port(context)
  }
}
