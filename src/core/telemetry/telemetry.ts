import { version } from '../../../package.json'
import { messageOf } from '../../errors.ts'
import { createCounter } from '../metrics/series.ts'
import type { Runtime } from '../runtime.ts'
import { createExporter, createPost } from './exporter.ts'
import { metricsRequest, traceRequest } from './otlp.ts'
import type { TelemetrySettings } from './settings.ts'
import type { Span } from './span.ts'
import { createTracer, type Tracer } from './tracer.ts'

/** Sends traces and metrics to a receiver of OpenTelemetry. */
export interface Telemetry extends Pick<Tracer, 'traceparentOf'> {
  /** Sends what waits, for at most some seconds. */
  close(): Promise<void>
}

const LAST_MS = 3000

export function startTelemetry(
  runtime: Pick<Runtime, 'observers' | 'metrics' | 'log'>,
  settings: TelemetrySettings,
): Telemetry {
  const { tracesUrl, metricsUrl, headers, metricsEveryMs } = settings
  const { observers, metrics, log } = runtime
  const sender = { resource: { ...settings.resource, 'service.version': version }, version }
  const sinceMs = Date.now()

  const spans =
    tracesUrl === undefined
      ? undefined
      : createExporter<Span>(batch => traceRequest(sender, batch), createPost(tracesUrl, headers, log))
  const tracer = spans && createTracer(spans.add, settings.sampled)
  const subscription = tracer && observers.subscribe(tracer.take)

  const postMetrics = metricsUrl === undefined ? undefined : createPost(metricsUrl, headers, log)
  let lostMetrics = 0
  const sendMetrics = async (signal: AbortSignal) => {
    if (!postMetrics) return
    try {
      const families = await metrics.families()
      await postMetrics(JSON.stringify(metricsRequest(sender, families, { sinceMs, nowMs: Date.now() })), signal)
    } catch {
      lostMetrics += 1
    }
  }
  const timer = setInterval(() => void sendMetrics(AbortSignal.timeout(metricsEveryMs)), metricsEveryMs)
  timer.unref()

  metrics.include(() => {
    const lost = createCounter({
      name: 'threadbox.telemetry.dropped',
      help: 'Spans, and whole exports of metrics, that no receiver took.',
      unit: '{item}',
      labelNames: ['signal'],
    })
    if (spans) lost.add(['traces'], spans.dropped)
    if (postMetrics) lost.add(['metrics'], lostMetrics)
    return [lost.family()]
  })

  return {
    traceparentOf: (runId, callId) => tracer?.traceparentOf(runId, callId),
    async close() {
      clearInterval(timer)
      subscription?.[Symbol.dispose]()
      await Promise.all([spans?.close(LAST_MS), sendMetrics(AbortSignal.timeout(LAST_MS))]).catch(error =>
        log(`telemetry: ${messageOf(error)}`, 'error'),
      )
    },
  }
}
