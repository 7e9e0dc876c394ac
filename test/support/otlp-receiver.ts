// The definitions as OpenTelemetry generates them; their types are not exported.
import * as generated from '@opentelemetry/otlp-transformer/build/src/generated/root.js'

const { trace, metrics } = (generated as any).default.opentelemetry.proto.collector
const requests = {
  '/v1/traces': trace.v1.ExportTraceServiceRequest,
  '/v1/metrics': metrics.v1.ExportMetricsServiceRequest,
}

export interface ReceivedSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Record<string, unknown>
  status: { code?: number }
}

/** A receiver of OpenTelemetry's protocol that takes what the official definitions take, to the last field, and nothing else. */
export function startOtlpReceiver() {
  const spans: ReceivedSpan[] = []
  const sent: { path: string; headers: Headers; text: string; body: any }[] = []
  const faults: string[] = []
  let isDown = false
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (isDown) return new Response(null, { status: 503 })
      const path = new URL(request.url).pathname
      const text = await request.text()
      const body = JSON.parse(text)
      try {
        assertOfType(path, body)
      } catch (error) {
        faults.push(`${path}: ${error}`)
        return new Response(String(error), { status: 400 })
      }
      sent.push({ path, headers: request.headers, text, body })
      for (const { scopeSpans } of body.resourceSpans ?? [])
        for (const scope of scopeSpans)
          for (const span of scope.spans) spans.push({ ...span, attributes: toRecord(span.attributes) })
      return Response.json({})
    },
  })
  return {
    url: server.url.origin,
    spans,
    sent,
    faults,
    setDown(down: boolean) {
      isDown = down
    },
    stop: () => server.stop(true),
  }
}

/**
 * Ids are hex in OTLP's JSON, and base64 in that of protobuf. Fields that the definitions do not know are lost on the way, and so a test
 * notices them.
 */
function assertOfType(path: string, body: any): void {
  const type = requests[path as keyof typeof requests]
  if (!type) throw new Error('no such path')
  const inBase64 = mapIds(body, (id, bytes) => {
    if (!new RegExp(`^[0-9a-f]{${2 * bytes}}$`).test(id)) throw new Error(`not an id: ${id}`)
    return Buffer.from(id, 'hex').toString('base64')
  })
  const problem = type.verify(type.fromObject(inBase64))
  if (problem) throw new Error(problem)
  const bytes = type.encode(type.fromObject(inBase64)).finish()
  const back = type.toObject(type.decode(bytes), { longs: String, bytes: String, json: true })
  if (!Bun.deepEquals(withoutZeros(back), withoutZeros(inBase64))) {
    throw new Error(`not as it was sent: ${JSON.stringify(back)} ${JSON.stringify(inBase64)}`)
  }
}

const idBytes: Record<string, number> = { traceId: 16, spanId: 8, parentSpanId: 8 }

function mapIds(value: any, map: (id: string, bytes: number) => string): any {
  if (Array.isArray(value)) return value.map(each => mapIds(each, map))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key in idBytes ? map(each as string, idBytes[key] ?? 0) : mapIds(each, map),
    ]),
  )
}

/** Fields with their default, and empty lists, are not on the wire. */
function withoutZeros(value: any): any {
  if (Array.isArray(value)) return value.map(withoutZeros)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== 0 && each !== '' && each !== '0' && !(Array.isArray(each) && each.length === 0))
      .map(([key, each]) => [key, withoutZeros(each)]),
  )
}

const toRecord = (attributes: any[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
