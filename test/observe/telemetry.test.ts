import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createExporter } from '../../src/core/telemetry/exporter.ts'
import { readTelemetry } from '../../src/core/telemetry/settings.ts'
import { startTelemetry, type Telemetry } from '../../src/core/telemetry/telemetry.ts'
import { parseTraceparent } from '../../src/core/telemetry/trace-context.ts'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'
import { startModelServer } from '../support/model-server.ts'
import { type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts'
import { until } from '../support/until.ts'

const receiver = startOtlpReceiver()
const model = startModelServer()
const app = useApp([], {
  ANTHROPIC_API_KEY: 'sk-ant-of-traces',
  ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl.replace(/\/v1$/, ''),
})
let telemetry: Telemetry
beforeAll(() => {
  const settings = readTelemetry({
    OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=other',
    OTEL_SERVICE_NAME: 'box',
    OTEL_METRIC_EXPORT_INTERVAL: '100',
  })!
  telemetry = startTelemetry(app.runtime, settings)
})
afterAll(async () => {
  await telemetry.close()
  await Promise.all([receiver.stop(), model.stop()])
  expect(receiver.faults).toEqual([])
})

const traceId = '0af7651916cd43dd8448eb211c80319c'
const outer = { spanId: 'b7ad6b7169203331' }

test('one trace has the request, its run, the calls of the model, the tool and its command', async () => {
  app.agent('traced', {}, { engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6' })
  model.play({ calls: [{ name: 'Bash', input: { command: 'echo the-command' } }] }, { text: 'the-answer' })
  const answered = await app.request('POST', '/v1/chat/traced', {
    body: { messages: [say('the-question')] },
    headers: { traceparent: `00-${traceId}-${outer.spanId}-01` },
  })
  await answered.text()
  const ofTrace = () => receiver.spans.filter(span => span.traceId === traceId)
  await until(() => ofTrace().some(({ name }) => name.startsWith('invoke_agent')))

  const parentOf = (span: ReceivedSpan) =>
    ofTrace().find(({ spanId }) => spanId === span.parentSpanId)?.name ?? span.parentSpanId
  const tree = ofTrace().map(span => [span.name, parentOf(span)])
  expect(tree.sort()).toEqual([
    ['POST /v1/chat/:slug', outer.spanId],
    ['chat claude-sonnet-4-6', 'invoke_agent traced'],
    ['chat claude-sonnet-4-6', 'invoke_agent traced'],
    ['create_sandbox', 'POST /v1/chat/:slug'],
    ['exec', 'execute_tool Bash'],
    ['exec', 'invoke_agent traced'],
    ['execute_tool Bash', 'invoke_agent traced'],
    ['invoke_agent traced', 'POST /v1/chat/:slug'],
  ])
  const named = (name: string) => ofTrace().find(span => span.name.startsWith(name))?.attributes
  const threadId = answered.headers.get('x-thread-id')
  expect(named('chat')).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.request.model': 'claude-sonnet-4-6',
    'gen_ai.conversation.id': threadId,
    'gen_ai.usage.input_tokens': expect.stringMatching(/^\d+$/),
    'gen_ai.usage.output_tokens': expect.stringMatching(/^\d+$/),
  })
  expect(named('invoke_agent')).toMatchObject({
    'gen_ai.agent.name': 'traced',
    'gen_ai.conversation.id': threadId,
    'gen_ai.provider.name': 'anthropic',
    'threadbox.run.id': answered.headers.get('x-run-id'),
    'threadbox.run.status': 'completed',
  })
  expect(named('execute_tool')).toMatchObject({ 'gen_ai.tool.name': 'Bash', 'threadbox.tool.outcome': 'done' })
  expect(named('POST')).toMatchObject({ 'http.response.status_code': '200', 'http.route': '/v1/chat/:slug' })
  for (const span of ofTrace()) expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).toBe(true)
  expect(JSON.stringify(receiver.sent)).not.toMatch(/the-question|the-answer|the-command|sk-ant/)
})

test('a command of a caller is part of its request, and one that times out has failed', async () => {
  const sandboxId = await app.sandbox()
  const body = { command: 'sleep 60', timeoutMs: 50 }
  const answer = await app.request('POST', `/v1/sandboxes/${sandboxId}/exec`, { body })
  expect(answer.status).toBe(408)
  const requestId = answer.headers.get('x-request-id')
  const request = () => receiver.spans.find(({ attributes }) => attributes['threadbox.request.id'] === requestId)
  await until(() => request() !== undefined)
  const exec = receiver.spans.find(({ parentSpanId }) => parentSpanId === request()?.spanId)
  expect(exec).toMatchObject({ name: 'exec', status: { code: 2 }, attributes: { 'error.type': 'timeout' } })
})

test('what a caller does not sample is not sent, and the receiver hears who sends', async () => {
  const unsampled = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
  await app.request('GET', '/v1/agents', { headers: { traceparent: `00-${unsampled}-${outer.spanId}-00` } })
  const last = await app.request('GET', '/v1/sandboxes')
  const isSent = ({ attributes }: ReceivedSpan) =>
    attributes['threadbox.request.id'] === last.headers.get('x-request-id')
  await until(() => receiver.spans.some(isSent))
  expect(receiver.spans.some(span => span.traceId === unsampled)).toBe(false)
  const traces = receiver.sent.find(({ path }) => path === '/v1/traces')!
  expect(traces.headers.get('x-tenant')).toBe('a b')
  const [{ resource, schemaUrl }] = traces.body.resourceSpans
  expect(schemaUrl).toBe('https://opentelemetry.io/schemas/1.45.0')
  expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'box' } })
  expect(resource.attributes).toContainEqual({ key: 'deployment.environment.name', value: { stringValue: 'test' } })
})

test('metrics are sent by the names of the conventions', async () => {
  const namesOf = (body: any): string[] =>
    body.resourceMetrics?.[0].scopeMetrics[0].metrics.map(({ name }: any) => name)
  const isWhole = ({ path, body }: { path: string; body: any }) =>
    path === '/v1/metrics' && namesOf(body).includes('gen_ai.client.token.usage')
  await until(() => receiver.sent.some(isWhole))
  const names = namesOf(receiver.sent.find(isWhole)?.body)
  expect(names).toContain('gen_ai.client.operation.duration')
  expect(names).toContain('threadbox.sandboxes')
})

test('a receiver that is gone costs a line and a counter, and requests go on', async () => {
  receiver.setDown(true)
  const counted = async () =>
    (await app.runtime.metrics.families()).find(({ name }) => name === 'threadbox.telemetry.dropped')
  await app.request('GET', '/v1/agents')
  await until(async () => ((await counted())?.points[0]?.value ?? 0) > 0)
  receiver.setDown(false)
  expect((await app.request('GET', '/v1/agents')).status).toBe(200)
  const lines = app.log.filter(line => line.startsWith('telemetry:'))
  expect(lines.filter(line => line.includes('it answered 503')).length).toBeLessThanOrEqual(2)
})

test('what waits for a slow receiver is bounded, and a stop sends what it can', async () => {
  const posted: number[] = []
  const exporter = createExporter<number>(
    batch => batch,
    async body => void posted.push(JSON.parse(body).length),
  )
  for (let n = 0; n < 10_000; n++) exporter.add(n)
  expect(exporter.dropped).toBe(10_000 - 4096)
  await exporter.close(5000)
  expect(posted.reduce((sum, count) => sum + count)).toBe(4096)

  const stuck = createExporter<number>(
    batch => batch,
    (_, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  )
  stuck.add(1)
  await stuck.close(20)
  await until(() => stuck.dropped === 1)
})

test('a traceparent is read as its specification says, and settings name the variable that is wrong', () => {
  const good = `00-${traceId}-${outer.spanId}-01`
  expect(parseTraceparent(good)).toEqual({ traceId, spanId: outer.spanId, isSampled: true })
  expect(parseTraceparent(`01-${traceId}-${outer.spanId}-03-more`)).toMatchObject({ isSampled: true })
  for (const bad of [
    '',
    `${good}-more`,
    good.toUpperCase(),
    `ff${good.slice(2)}`,
    good.replace(traceId, '0'.repeat(32)),
  ])
    expect([bad, parseTraceparent(bad)]).toEqual([bad, undefined])
  expect(readTelemetry({})).toBeUndefined()
  expect(readTelemetry({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a', OTEL_SDK_DISABLED: 'true' })).toBeUndefined()
  expect(readTelemetry({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a/x' })).toMatchObject({ tracesUrl: 'http://a/x' })
  expect(() => readTelemetry({ OTEL_EXPORTER_OTLP_ENDPOINT: 'a:1' })).toThrow('OTEL_EXPORTER_OTLP_ENDPOINT: must')
  const headers = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a', OTEL_EXPORTER_OTLP_HEADERS: 'secret' }
  expect(() => readTelemetry(headers)).toThrow(/^OTEL_EXPORTER_OTLP_HEADERS: must be name=value pairs/)
})
