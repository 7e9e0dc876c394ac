import type { Fact, Observation } from '../../model/observation.ts'
import { operationOf, providerName } from '../observe/genai.ts'
import { type Attributes, type OpenSpan, preciseNow, type Span } from './span.ts'
import { childOf, formatTraceparent, parseTraceparent, type SpanContext } from './trace-context.ts'

/** Makes spans of what is observed: requests, the runs and commands that they begin, and a run's calls of models and tools. */
export interface Tracer {
  take(observation: Observation): void
  /** The header `traceparent` for a call of a model that is about to be sent. Undefined for a run that is not traced. */
  traceparentOf(runId: string, callId: string): string | undefined
}

interface OpenRun extends OpenSpan {
  tools: Map<string, OpenSpan>
  /** The model calls that were sent with their position in the trace. */
  calls: Map<string, SpanContext>
  model?: Attributes
}

/** How many requests are remembered after their answer has begun: their command or stream goes on. */
const MAX_REQUESTS = 5000
/** How many spans of a kind may be open. The oldest beyond that are dropped. */
const MAX_OPEN = 10_000
/** Paths without spans: machines ask for them all day. */
const quiet = ['/health', '/health/ready', '/metrics']

/** Over 100 lines: every observation reads or changes the same table of open spans. */
export function createTracer(emit: (span: Span) => void, sampled: number): Tracer {
  const requests = new Map<string, OpenSpan>()
  const runs = new Map<string, OpenRun>()
  const execs = new Map<string, OpenSpan>()
  const isSampled = () => Math.random() < sampled

  const open = (parent: SpanContext | undefined, beginMs = preciseNow()): OpenSpan => ({
    context: childOf(parent, isSampled),
    ...(parent && { parentSpanId: parent.spanId }),
    beginMs,
  })
  const keep = <Kept>(map: Map<string, Kept>, key: string, kept: Kept, most: number) => {
    map.set(key, kept)
    const [oldest] = map.keys()
    if (map.size > most && oldest !== undefined) map.delete(oldest)
  }
  const end = (
    span: OpenSpan | undefined,
    rest: Pick<Span, 'name' | 'kind' | 'attributes'> & { errorType?: string },
  ) => {
    if (span?.context.isSampled) emit({ ...span, ...rest, endMs: preciseNow() })
  }
  const causeOf = (requestId: string | undefined) =>
    requestId === undefined ? undefined : requests.get(requestId)?.context

  /** An agent's command belongs to its tool call where that is certain: when a single call goes on. */
  const placeInRun = (runId: string | undefined): SpanContext | undefined => {
    const run = runId === undefined ? undefined : runs.get(runId)
    const [tool, ...others] = run?.tools.values() ?? []
    return (others.length === 0 ? tool : undefined)?.context ?? run?.context
  }
  const callOf = (run: OpenRun, callId: string): SpanContext => {
    const context = run.calls.get(callId) ?? childOf(run.context, isSampled)
    run.calls.set(callId, context)
    return context
  }

  function endModelCall(seen: Fact & { type: 'model-call.ended' }): void {
    const run = runs.get(seen.runId)
    if (!run) return
    const context = callOf(run, seen.callId)
    run.calls.delete(seen.callId)
    run.model = { 'gen_ai.provider.name': providerName(seen.provider), 'gen_ai.request.model': seen.model }
    const beginMs = preciseNow() - seen.durationMs
    end(
      { context, parentSpanId: run.context.spanId, beginMs },
      {
        name: `${operationOf(seen)} ${seen.model}`,
        kind: 'client',
        attributes: {
          'gen_ai.operation.name': operationOf(seen),
          ...run.model,
          'gen_ai.conversation.id': seen.threadId,
          'gen_ai.usage.input_tokens': seen.inputTokens,
          'gen_ai.usage.output_tokens': seen.outputTokens,
          'gen_ai.usage.cache_read.input_tokens': seen.cacheReadTokens,
          'gen_ai.usage.cache_creation.input_tokens': seen.cacheWriteTokens,
          'gen_ai.response.time_to_first_chunk': seen.firstChunkMs === undefined ? undefined : seen.firstChunkMs / 1000,
          'threadbox.cost.usd': seen.costUsd,
        },
        ...(seen.status !== 'completed' && { errorType: seen.status }),
      },
    )
  }

  function endRun(seen: Fact & { type: 'run.ended' }): void {
    const run = runs.get(seen.runId)
    runs.delete(seen.runId)
    const isFault = seen.status === 'failed' || seen.status === 'interrupted'
    end(run, {
      name: `invoke_agent ${seen.agentSlug}`,
      kind: 'internal',
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': seen.agentSlug,
        'gen_ai.conversation.id': seen.threadId,
        ...run?.model,
        'gen_ai.usage.input_tokens': seen.inputTokens,
        'gen_ai.usage.output_tokens': seen.outputTokens,
        'threadbox.run.id': seen.runId,
        'threadbox.run.status': seen.status,
        'threadbox.engine': seen.engine,
        'threadbox.sandbox.id': seen.sandboxId,
        'threadbox.team.id': seen.teamId,
      },
      ...(isFault && { errorType: seen.status }),
    })
  }

  function endTool(seen: Fact & { type: 'tool-call.ended' }): void {
    const tools = runs.get(seen.runId)?.tools
    const tool = tools?.get(seen.callId)
    tools?.delete(seen.callId)
    end(tool, {
      name: `execute_tool ${seen.name}`,
      kind: 'internal',
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': seen.name,
        'gen_ai.tool.call.id': seen.callId,
        'gen_ai.conversation.id': seen.threadId,
        'threadbox.tool.outcome': seen.outcome,
      },
      ...(seen.outcome === 'failed' && { errorType: 'tool_error' }),
    })
  }

  function endRequest(seen: Fact & { type: 'request.ended' }): void {
    if (quiet.includes(seen.route)) return
    end(requests.get(seen.cause.requestId), {
      name: `${seen.method} ${seen.route}`,
      kind: 'server',
      attributes: {
        'http.request.method': seen.method,
        'http.route': seen.route,
        'http.response.status_code': seen.status,
        'threadbox.request.id': seen.cause.requestId,
        'threadbox.team.id': seen.teamId,
      },
      ...(seen.status >= 500 && { errorType: String(seen.status) }),
    })
  }

  function endExec(seen: Fact & { type: 'exec.ended' }): void {
    const exec = execs.get(seen.execId)
    execs.delete(seen.execId)
    end(exec, {
      name: 'exec',
      kind: 'internal',
      attributes: {
        'threadbox.exec.id': seen.execId,
        'threadbox.sandbox.id': seen.sandboxId,
        'threadbox.exec.outcome': seen.outcome,
        'process.exit.code': seen.exitCode,
      },
      ...(seen.outcome !== 'exited' && { errorType: seen.outcome }),
    })
  }

  return {
    traceparentOf(runId, callId) {
      const run = runs.get(runId)
      return run && formatTraceparent(callOf(run, callId))
    },
    take(seen) {
      switch (seen.type) {
        case 'request.started':
          return keep(requests, seen.requestId, open(parseTraceparent(seen.traceparent)), MAX_REQUESTS)
        case 'request.ended':
          return endRequest(seen)
        case 'run.started': {
          const run = { ...open(causeOf(seen.cause?.requestId)), tools: new Map(), calls: new Map() }
          return keep<OpenRun>(runs, seen.runId, run, MAX_OPEN)
        }
        case 'run.ended':
          return endRun(seen)
        case 'model-call.ended':
          return endModelCall(seen)
        case 'tool-call.started': {
          const run = runs.get(seen.runId)
          if (run) keep(run.tools, seen.callId, open(run.context), MAX_OPEN)
          return
        }
        case 'tool-call.ended':
          return endTool(seen)
        case 'exec.started':
          return keep(execs, seen.execId, open(placeInRun(seen.runId) ?? causeOf(seen.cause?.requestId)), MAX_OPEN)
        case 'exec.ended':
          return endExec(seen)
        case 'sandbox.created':
          return end(open(causeOf(seen.cause.requestId), preciseNow() - seen.durationMs), {
            name: 'create_sandbox',
            kind: 'internal',
            attributes: {
              'threadbox.sandbox.id': seen.sandboxId,
              'threadbox.backend': seen.backend,
              'threadbox.sandbox.is_spare': seen.isSpare,
            },
          })
      }
    },
  }
}
