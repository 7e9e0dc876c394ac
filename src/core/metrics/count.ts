import type { Observation } from '../../model/observation.ts'
import { operationOf, providerName } from '../observe/genai.ts'
import { createKnownModels } from './known-models.ts'
import { createCounter, createHistogram, type Family } from './series.ts'

const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const EXEC_SECONDS = [...REQUEST_SECONDS, 600]
const RUN_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600]
// The OpenTelemetry conventions prescribe these three.
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power)
const MODEL_SECONDS = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power)
const FIRST_CHUNK_SECONDS = [
  ...[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75],
  ...[1, 2.5, 5, 7.5, 10],
]

/** Counts what is observed. */
export interface Counts {
  count(observation: Observation): void
  families(): Family[]
}

const model = ['gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.request.model']

/** Labels come only from this program, its operator, and models that have answered. They never hold ids or a user's text. */
export function createCounts(engines: ReadonlySet<string>): Counts {
  const series = createSeries()
  const known = createKnownModels()
  const engineOf = (name: string) => (engines.has(name) ? name : 'other')

  return {
    families: () => Object.values(series).map(each => each.family()),
    count(seen) {
      switch (seen.type) {
        case 'request.ended': {
          const { method, route, status, durationMs } = seen
          // A sandbox's program chooses this status, so only its class is shown.
          const shown = route.includes('/ports/') ? `${Math.floor(status / 100)}xx` : String(status)
          series.requests.add([method, route, shown])
          series.requestSeconds.add([method, route], durationMs / 1000)
          return
        }
        case 'exec.ended':
          return series.execSeconds.add(
            [seen.runId === undefined ? 'caller' : 'agent', seen.outcome],
            seen.durationMs / 1000,
          )
        case 'sandbox.created':
          return series.createSeconds.add([seen.backend, seen.isSpare ? 'spare' : 'new'], seen.durationMs / 1000)
        case 'sandbox.failed':
          return series.createFailures.add([seen.backend, seen.code])
        case 'sandbox.deleted':
          return series.deleted.add([seen.backend, seen.cause ? 'caller' : 'expired'])
        case 'run.ended':
          series.runs.add([seen.status, engineOf(seen.engine)])
          series.runSeconds.add([engineOf(seen.engine)], seen.durationMs / 1000)
          return
        case 'tool-call.ended':
          return series.toolSeconds.add([engineOf(seen.engine), seen.outcome], seen.durationMs / 1000)
        case 'model-call.ended': {
          const labels = [operationOf(seen), providerName(seen.provider), known.nameOf(seen)]
          series.tokens.add([...labels, 'input'], seen.inputTokens)
          series.tokens.add([...labels, 'output'], seen.outputTokens)
          series.modelSeconds.add([...labels, seen.status], seen.durationMs / 1000)
          series.modelUsd.add(labels, seen.costUsd)
          if (seen.firstChunkMs !== undefined) series.firstChunkSeconds.add(labels, seen.firstChunkMs / 1000)
          return
        }
      }
    },
  }
}

const createSeries = () => ({
  requests: createCounter({
    name: 'threadbox.http.requests',
    help: 'Requests whose answer has begun.',
    unit: '{request}',
    labelNames: ['method', 'route', 'status'],
  }),
  requestSeconds: createHistogram(
    {
      name: 'threadbox.http.request.duration',
      help: 'Time from a request to the begin of its answer.',
      unit: 's',
      labelNames: ['method', 'route'],
    },
    REQUEST_SECONDS,
  ),
  execSeconds: createHistogram(
    {
      name: 'threadbox.exec.duration',
      help: 'Time that commands took, of callers and of agents.',
      unit: 's',
      labelNames: ['by', 'outcome'],
    },
    EXEC_SECONDS,
  ),
  createSeconds: createHistogram(
    {
      name: 'threadbox.create.duration',
      help: 'Time to make a sandbox, with its files and set-up commands.',
      unit: 's',
      labelNames: ['backend', 'source'],
    },
    EXEC_SECONDS,
  ),
  createFailures: createCounter({
    name: 'threadbox.create.failures',
    help: 'Sandboxes that could not be made, by the code of the error.',
    unit: '{sandbox}',
    labelNames: ['backend', 'code'],
  }),
  deleted: createCounter({
    name: 'threadbox.sandboxes.deleted',
    help: 'Sandboxes that were deleted, by a caller or because their time was over.',
    unit: '{sandbox}',
    labelNames: ['backend', 'reason'],
  }),
  runs: createCounter({
    name: 'threadbox.runs',
    help: 'Runs that have ended, by how.',
    unit: '{run}',
    labelNames: ['status', 'engine'],
  }),
  runSeconds: createHistogram(
    { name: 'threadbox.run.duration', help: 'Time that runs took.', unit: 's', labelNames: ['engine'] },
    RUN_SECONDS,
  ),
  toolSeconds: createHistogram(
    {
      name: 'threadbox.tool.duration',
      help: 'Time that tool calls of agents took.',
      unit: 's',
      labelNames: ['engine', 'outcome'],
    },
    EXEC_SECONDS,
  ),
  tokens: createHistogram(
    {
      name: 'gen_ai.client.token.usage',
      help: 'Tokens that a call of a model used; those of the cache are among the input.',
      unit: '{token}',
      labelNames: [...model, 'gen_ai.token.type'],
    },
    TOKENS,
  ),
  modelSeconds: createHistogram(
    {
      name: 'gen_ai.client.operation.duration',
      help: 'Time that calls of models took.',
      unit: 's',
      labelNames: [...model, 'status'],
    },
    MODEL_SECONDS,
  ),
  firstChunkSeconds: createHistogram(
    {
      name: 'gen_ai.client.operation.time_to_first_chunk',
      help: 'Time to the first piece of a streamed answer of a model.',
      unit: 's',
      labelNames: model,
    },
    FIRST_CHUNK_SECONDS,
  ),
  modelUsd: createCounter({
    name: 'threadbox.model.cost',
    help: 'What calls of models cost.',
    unit: 'USD',
    labelNames: model,
  }),
})
