import { afterAll, expect, test } from 'bun:test'
import { version } from '../../package.json'
import { listenForMetrics } from '../../src/cli/metrics-listener.ts'
import { createKey } from '../../src/core/access/keys.ts'
import { prometheusText } from '../../src/core/metrics/prometheus.ts'
import { createCounter } from '../../src/core/metrics/series.ts'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'
import { codeOf } from '../support/client.ts'
import { startModelServer } from '../support/model-server.ts'
import { promtool } from '../support/promtool.ts'

const model = startModelServer()
afterAll(() => model.stop())
const app = useApp([], {
  ANTHROPIC_API_KEY: 'sk-ant-of-metrics',
  ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl.replace(/\/v1$/, ''),
})

const keyOf = (team: string, ...scopes: ('metrics' | 'read' | 'admin')[]) =>
  createKey(app.runtime.db, { team, name: 'figures', ...(scopes.length > 0 && { scopes }) }).key

async function scrape(): Promise<string> {
  const response = await app.request('GET', '/metrics', { key: keyOf('default', 'metrics') })
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  return await response.text()
}

/** The value of one line, by its name with labels. */
const valueIn = (text: string, series: string): number =>
  Number(
    text
      .split('\n')
      .find(line => line.startsWith(`${series} `))
      ?.slice(series.length + 1) ?? Number.NaN,
  )

test('figures tell of sandboxes, commands, runs, models and the process, as promtool wants them', async () => {
  app.agent('metered', {}, { engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6' })
  model.play({ calls: [{ name: 'Bash', input: { command: 'true' } }] }, { text: 'Done.' })
  const answered = await app.request('POST', '/v1/chat/metered', { body: { messages: [say('the-words-of-a-user')] } })
  await answered.text()
  const sandboxId = answered.headers.get('x-sandbox-id') ?? ''
  await app.exec(sandboxId, 'echo the-command')
  await app.ask('GET', '/v1/no/such/path/the-path')
  await app.ask('POST', '/v1/sandboxes', { agent: 'no-such-agent' })

  const text = await scrape()
  const expected: Record<string, number> = {
    [`threadbox_build_info{version="${version}"}`]: 1,
    'threadbox_sandboxes{state="running",backend="nsjail",isolation="namespaces"}': 1,
    'threadbox_sandboxes{state="stopped",backend="nsjail",isolation="namespaces"}': 0,
    'threadbox_exec_duration_seconds_count{by="caller",outcome="exited"}': 1,
    // The tool's, and the engine's own look at the sandbox.
    'threadbox_exec_duration_seconds_count{by="agent",outcome="exited"}': 2,
    'threadbox_create_duration_seconds_count{backend="nsjail",source="new"}': 1,
    'threadbox_create_failures_total{backend="nsjail",code="agent_not_found"}': 1,
    threadbox_runs_active: 0,
    'threadbox_runs_total{status="completed",engine="ai-sdk"}': 1,
    'threadbox_run_duration_seconds_count{engine="ai-sdk"}': 1,
    'threadbox_tool_duration_seconds_count{engine="ai-sdk",outcome="done"}': 1,
    'threadbox_http_requests_total{method="POST",route="/v1/sandboxes/:sandboxId/exec",status="200"}': 1,
    'threadbox_http_requests_total{method="GET",route="other",status="404"}': 1,
    threadbox_spares: 0,
    threadbox_stream_readers: 0,
    'threadbox_proxy_bytes_total{direction="sent"}': 0,
  }
  expect(Object.fromEntries(Object.keys(expected).map(series => [series, valueIn(text, series)]))).toEqual(expected)

  const call = 'gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude-sonnet-4-6"'
  expect(valueIn(text, `gen_ai_client_operation_duration_seconds_count{${call},status="completed"}`)).toBe(2)
  expect(valueIn(text, `gen_ai_client_operation_time_to_first_chunk_seconds_count{${call}}`)).toBe(2)
  expect(valueIn(text, `gen_ai_client_token_usage_count{${call},gen_ai_token_type="input"}`)).toBe(2)
  expect(valueIn(text, `threadbox_model_cost_usd_total{${call}}`)).toBeGreaterThan(0)
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_open_fds'])
    expect([name, valueIn(text, name) > 0]).toEqual([name, true])
  expect(valueIn(text, 'threadbox_database_size_bytes')).toBeGreaterThan(0)

  // No ids, and nothing that somebody has said or chosen.
  expect(text).not.toMatch(/\b(sbx|thr|run|env|key|team|req|exec|call)_[0-9a-f]{8}|the-|no-such|metered|tbx_/)

  const checker = Bun.spawn([await promtool(), 'check', 'metrics'], { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' })
  checker.stdin.write(text)
  await checker.stdin.end()
  const said = (await checker.stdout.text()) + (await checker.stderr.text())
  expect([await checker.exited, said]).toEqual([0, ''])
})

test('a model that did not answer has no label of its own, whatever a caller calls it', async () => {
  app.agent('free', {}, { engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6' })
  model.play({ status: 404 })
  const options = { model: 'anthropic/a-word-of-a-caller' }
  await (await app.request('POST', '/v1/chat/free', { body: { messages: [say('a')], options } })).text()
  const text = await scrape()
  expect(text).not.toContain('a-word-of-a-caller')
  expect(text).toContain('gen_ai_request_model="other",status="failed"')
})

test('figures are for keys of the operator with the scope, and such a key reads nothing else regression', async () => {
  const statusOf = async (key: string, path = '/metrics') => (await app.request('GET', path, { key })).status
  expect(await statusOf(keyOf('default', 'metrics'))).toBe(200)
  expect(await statusOf(keyOf('default', 'admin'))).toBe(200)
  expect(await statusOf(keyOf('default'))).toBe(200)
  expect(await statusOf(keyOf('default', 'read'))).toBe(403)
  expect(await statusOf(keyOf('other', 'metrics'))).toBe(403)
  expect(await statusOf(app.foreignKey)).toBe(403)
  expect(codeOf(await app.ask('GET', '/metrics', undefined, { key: '' }))).toBe('401 unauthorized')
  const { token } = (await app.ask('POST', '/v1/tokens', {})).body
  expect(await statusOf(token)).toBe(403)
  for (const path of ['/v1/me', '/v1/sandboxes', '/v1/server', '/v1/usage', '/v1/events', '/v1/keys'])
    expect([path, await statusOf(keyOf('default', 'metrics'), path)]).toEqual([path, 403])
})

test('an address of its own has the figures without a key, and nothing else', async () => {
  const listener = listenForMetrics(app.runtime, { host: '127.0.0.1', port: 0 })
  try {
    const at = (path: string, method = 'GET') => fetch(new URL(path, listener.url), { method })
    expect(await (await at('/metrics')).text()).toContain('threadbox_build_info')
    expect((await at('/v1/sandboxes')).status).toBe(404)
    expect((await at('/metrics', 'POST')).status).toBe(405)
  } finally {
    await listener.stop(true)
  }
})

test('labels that are invented without end count together', () => {
  const counter = createCounter({ name: 'words', help: 'Words.', unit: '', labelNames: ['word'] })
  for (let n = 0; n < 5000; n++) counter.add([`word ${n}`])
  const { points } = counter.family()
  expect(points.length).toBe(2001)
  expect(points.at(-1)).toEqual({ labels: ['other'], value: 3000 })
})

test('a label may have any character', () => {
  const counter = createCounter({ name: 'odd', help: 'Odd.', unit: 'By', labelNames: ['a.b'] })
  counter.add(['"\\\n'], 2)
  expect(prometheusText([counter.family()])).toBe(
    '# HELP odd_bytes_total Odd.\n# TYPE odd_bytes_total counter\nodd_bytes_total{a_b="\\"\\\\\\n"} 2\n',
  )
})
