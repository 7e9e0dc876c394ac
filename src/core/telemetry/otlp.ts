import type { Family, Point } from '../metrics/series.ts'
import { SEMANTIC_CONVENTIONS } from '../observe/genai.ts'
import type { Attributes, Span } from './span.ts'

/** OTLP as JSON: the requests of OpenTelemetry's protocol, with ids in hex and 64-bit numbers as text. */

const schemaUrl = `https://opentelemetry.io/schemas/${SEMANTIC_CONVENTIONS}`

interface Sender {
  resource: Attributes
  version: string
}

export const traceRequest = ({ resource, version }: Sender, spans: readonly Span[]) => ({
  resourceSpans: [
    {
      resource: { attributes: attributesOf(resource) },
      scopeSpans: [{ scope: { name: 'threadbox', version }, spans: spans.map(spanOf), schemaUrl }],
      schemaUrl,
    },
  ],
})

const kinds = { internal: 1, server: 2, client: 3 } as const
const [UNSET, ERROR] = [0, 2]

const spanOf = ({ context, parentSpanId, name, kind, beginMs, endMs, attributes, errorType }: Span) => ({
  traceId: context.traceId,
  spanId: context.spanId,
  ...(parentSpanId !== undefined && { parentSpanId }),
  name,
  kind: kinds[kind],
  startTimeUnixNano: nanoseconds(beginMs),
  endTimeUnixNano: nanoseconds(Math.max(beginMs, endMs)),
  attributes: attributesOf({ ...attributes, 'error.type': errorType }),
  status: { code: errorType === undefined ? UNSET : ERROR },
})

const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: anyValue(value) }]))

function anyValue(value: string | number | boolean) {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

/** A double has enough precision for fractions of milliseconds, but not for nanoseconds since 1970, so the digits are written. */
const nanoseconds = (ms: number): string => `${Math.floor(ms * 1000)}000`

const CUMULATIVE = 2

/** `sinceMs` is the moment since which counters count. */
export const metricsRequest = (
  { resource, version }: Sender,
  families: readonly Family[],
  { sinceMs, nowMs }: { sinceMs: number; nowMs: number },
) => {
  const times = { startTimeUnixNano: nanoseconds(sinceMs), timeUnixNano: nanoseconds(nowMs) }
  return {
    resourceMetrics: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeMetrics: [
          {
            scope: { name: 'threadbox', version },
            metrics: families.filter(({ points }) => points.length > 0).map(family => metricOf(family, times)),
            schemaUrl,
          },
        ],
        schemaUrl,
      },
    ],
  }
}

function metricOf(family: Family, times: { startTimeUnixNano: string; timeUnixNano: string }) {
  const { name, help, unit, kind, labelNames, points, bounds = [] } = family
  const labels = (point: Point) => ({
    ...times,
    attributes: attributesOf(Object.fromEntries(labelNames.map((label, index) => [label, point.labels[index] ?? '']))),
  })
  const numbers = points.map(point => ({ ...labels(point), asDouble: point.value }))
  const about = { name, description: help, unit }
  if (kind === 'gauge') return { ...about, gauge: { dataPoints: numbers } }
  if (kind === 'counter')
    return { ...about, sum: { dataPoints: numbers, aggregationTemporality: CUMULATIVE, isMonotonic: true } }
  const dataPoints = points.map(point => ({
    ...labels(point),
    count: String(point.counts?.reduce((sum, count) => sum + count, 0) ?? 0),
    sum: point.value,
    bucketCounts: point.counts?.map(String) ?? [],
    explicitBounds: bounds,
  }))
  return { ...about, histogram: { dataPoints, aggregationTemporality: CUMULATIVE } }
}
