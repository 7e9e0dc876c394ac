import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { useAgentServer } from '../support/agent-server.ts'
import { bundleAgent, bundleOf, type DeployForm, deployEvents, deployForm } from '../support/bundle.ts'
import { until } from '../support/until.ts'

const { server, model, said, chat } = useAgentServer()

async function deploy(fields: DeployForm): Promise<any> {
  const last = (await deployEvents(await server.request('POST', '/v1/agents/deploy', { body: deployForm(fields) }))).at(
    -1,
  )
  if (last.type !== 'result') throw new Error(JSON.stringify(last))
  return last.result
}
const tool = (name: string, input: object = {}) => ({ name: `mcp__user-tools__${name}`, input })
const outcomes = (chunks: any[]) =>
  chunks.filter(({ type }) => type.startsWith('tool-output')).map(({ output, errorText }) => output ?? errorText)
const toolProcesses = (sandboxId: string) => server.exec(sandboxId, 'pgrep -fc "[t]hreadbox tools" || true')
const logsOf = async (slug: string) => (await server.ask('GET', `/v1/agents/${slug}/logs`)).body.logs as any[]

beforeEach(() => {
  model.requests.length = 0
})

describe.each(['zod', 'zod-3'])('an agent’s own tools, with %s', zod => {
  const slug = `adder-${zod}`
  let sandboxId = ''
  beforeAll(async () => {
    await deploy({ slug, bundle: await bundleAgent('adder.ts', zod), engine: 'ai-sdk' })
    for (const [key, value] of [
      ['GREETING', 'secret-hello'],
      ['THREADBOX_TOOL_TIMEOUT_MS', '2500'],
    ]) {
      await server.ask('PUT', `/v1/agents/${slug}/env`, { key, value })
    }
  })

  test('run in its sandbox, with its variables; one that throws, hangs or ends fails alone', async () => {
    const calls = [
      tool('add', { a: 2 }),
      tool('add', { a: 'x' }),
      tool('fail'),
      tool('hang'),
      tool('add', { a: 5, b: 5 }),
    ]
    const more = [tool('wait'), tool('quit'), tool('add', { a: 1 }), tool('none')]
    const turns = [...calls, ...more].map(call => ({ calls: [call] }))
    model.play(...turns, { text: 'Done.' })
    const { chunks, ...place } = await said('Go.', {}, slug)
    sandboxId = place.sandboxId
    expect(outcomes(chunks)).toEqual([
      '3 secret-hello /home/user/work',
      expect.stringMatching(/^The input is wrong:\n- a: /),
      'it broke',
      'hang did not end within 2500 ms and was stopped.',
      '10 secret-hello /home/user/work',
      'wait did not end within 2500 ms and was stopped.',
      'The tools ended unexpectedly (exit code 3); the next call starts them again.',
      '2 secret-hello /home/user/work',
      expect.stringMatching(/none/),
    ])
    expect(model.requests[0]?.tools).toContain('mcp__user-tools__add')
    const { input_schema: schema } = model.requests[0]!.body.tools.find(({ name }: any) => name.endsWith('__add'))
    expect(schema).toMatchObject({
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number', default: 1 } },
      required: ['a'],
    })
    expect((await toolProcesses(sandboxId)).stdout).toBe('0\n')
  })

  test('leave what they print in the agent’s log, without what is secret', async () => {
    const printed = (await logsOf(slug)).filter(({ source }) => source === 'tools')
    expect(printed).toMatchObject([
      { level: 'info', sandboxId, text: expect.stringContaining('adding in [GREETING]\nnot a message') },
    ])
    expect(JSON.stringify(await logsOf(slug))).not.toContain('secret-')
    expect((await server.exec(sandboxId, 'ls /opt/threadbox')).stdout).toMatch(/^[0-9a-f]{64}\.mjs\n$/)
  })

  test('end with a cancel', async () => {
    model.play({ calls: [tool('wait')] })
    const { response, sandboxId: id, threadId } = await chat('Go.', { sandboxId }, slug)
    await until(async () => (await toolProcesses(id)).stdout !== '0\n')
    await server.ask('DELETE', `/v1/chat/${slug}/${id}/stream?threadId=${threadId}`)
    expect((await toolProcesses(id)).stdout).toBe('0\n')
    await response.text()
  })
})

test('a deploy changes no sandbox that there is, nor a reply that is under way', async () => {
  const version = (text: string) =>
    bundleOf(
      `export default { systemPrompt: 'I am ${text}.', tools: { say: { description: '', execute: () => '${text}' } } }`,
    )
  await deploy({ slug: 'turner', bundle: version('one'), engine: 'ai-sdk' })
  model.play({ text: 'word '.repeat(20), everyMs: 50 })
  const { response, sandboxId, threadId } = await chat('Go.', {}, 'turner')
  const reader = response.body!.getReader()
  await reader.read()
  expect((await deploy({ slug: 'turner', bundle: version('two'), engine: 'ai-sdk' })).version).toBe(2)
  let text = ''
  for (let step = await reader.read(); !step.done; step = await reader.read())
    text += new TextDecoder().decode(step.value)
  expect(text).toEndWith('data: [DONE]\n\n')
  for (const [place, expected] of [
    [{ sandboxId, threadId }, 'one'],
    [{}, 'two'],
  ] as const) {
    model.play({ calls: [tool('say')] }, { text: 'Done.' })
    model.requests.length = 0
    expect(outcomes((await said('Again.', place, 'turner')).chunks)).toEqual([expected])
    expect(JSON.stringify(model.requests[0]?.body.system)).toContain(`I am ${expected}.`)
  }
})

test('a bundle that wants variables to load is deployed before them, and told of', async () => {
  const bundle = bundleOf(`
    if (!process.env.NEEDED) throw new Error('NEEDED is not set')
    export default { tools: { say: { description: '', execute: () => process.env.NEEDED } } }`)
  const metadata = { model: 'claude-sonnet-4-6', tools: [{ name: 'say', description: '' }], hooks: [] }
  await deploy({ slug: 'needy', bundle, metadata, engine: 'ai-sdk' })
  expect(JSON.stringify(await logsOf('needy'))).toContain('NEEDED is not set')
  model.play({ text: 'Without.' })
  const { chunks } = await said('Go.', {}, 'needy')
  expect(chunks.find(({ type }) => type === 'data-notice')?.data.text).toContain('NEEDED is not set')
  expect((await logsOf('needy')).at(-1)).toMatchObject({ source: 'tools' })
  await server.ask('PUT', '/v1/agents/needy/env', { key: 'NEEDED', value: 'here' })
  model.play({ calls: [tool('say')] }, { text: 'Done.' })
  expect(outcomes((await said('Go.', {}, 'needy')).chunks)).toEqual(['here'])
})

test('what the client of a session reads is there', async () => {
  const { sandboxes } = (await server.ask('GET', '/v1/agents/turner/logs')).body
  const { id, threads } = sandboxes[1]
  expect(threads[0]).toMatchObject({ status: 'completed', input_tokens: expect.any(Number), error: null })
  const { sandbox } = (await server.ask('GET', `/v1/agents/turner/logs/${id}`)).body
  expect(sandbox).toEqual(sandboxes[1])
  const { thread } = (await server.ask('GET', `/v1/agents/turner/logs/${id}?threadId=${threads[0].id}`)).body
  expect(thread.messages.map(({ role }: any) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
  expect((await server.ask('GET', `/v1/agents/needy/logs/${id}`)).status).toBe(404)
})
