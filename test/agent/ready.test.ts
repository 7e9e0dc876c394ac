import { afterAll, describe, expect, test } from 'bun:test'
import { agentServer, modelSetups, optionsOf } from '../support/agent-server.ts'
import { codeOf } from '../support/client.ts'
import { startModelServer } from '../support/model-server.ts'
import { command, patiently, type Server, startServer } from '../support/server.ts'
import { textIn } from '../support/sse.ts'

patiently()
const model = startModelServer()
afterAll(() => model.stop())

const agentsOf = async (server: Server) =>
  (await command(['agents', 'list', '--data-dir', server.dataDirectory])).stdout
const hello = { messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello.' }] }] }

describe('coder stands ready', () => {
  test.each([...modelSetups])('with what is needed for $model, and answers at once', async setup => {
    await using server = await startServer(optionsOf([setup], model, 'sk-ready'))
    expect(await agentsOf(server)).toContain('coder')
    model.play({ text: 'Ready.' })
    expect(textIn((await agentServer(server, model, '').said('Hello.')).chunks)).toBe('Ready.')
    const sent = model.requests.at(-1)!
    expect([sent.wire, `${setup.model.split('/')[0]}/${sent.body.model}`]).toEqual([setup.wire, setup.model])
  })

  test('with the model of --model in place of that of the key', async () => {
    const options = optionsOf(modelSetups.slice(0, 1), model, 'sk-ready', {
      flags: ['--model', 'anthropic/claude-haiku-4-5'],
    })
    await using server = await startServer(options)
    model.play({ text: 'Ready.' })
    await agentServer(server, model, '').said('Hello.')
    expect(model.requests.at(-1)?.body.model).toBe('claude-haiku-4-5')
  })
})

test('coder is not there without a key, and echo is', async () => {
  await using server = await startServer()
  const agents = await agentsOf(server)
  expect([agents.includes('coder'), agents.includes('echo')]).toEqual([false, true])
  expect(codeOf(await server.ask('POST', '/v1/chat/coder', hello))).toBe('404 agent_not_found')
})

test('when its key is gone after a restart, coder says which one it wants', async () => {
  const { env, ...options } = optionsOf(modelSetups.slice(0, 1), model, 'sk-ready')
  const environment = { ...env }
  await using server = await startServer({ ...options, env: environment })
  expect(await server.stop()).toBe(0)
  delete environment.ANTHROPIC_API_KEY
  await server.start()
  const { chunks } = await agentServer(server, model, '').said('Hello.')
  expect(chunks.at(-2)).toEqual({ type: 'error', errorText: expect.stringContaining('ANTHROPIC_API_KEY') })
})

describe('serve does not start', () => {
  const mistakes = [
    {
      name: 'with a model of a provider without a key',
      flags: ['--model', 'openai/gpt-5.2'],
      told: ['--model', 'OPENAI_API_KEY'],
    },
    { name: 'with a model of an unknown provider', flags: ['--model', 'local/some'], told: ['--model', '--model-url'] },
    { name: 'with a model without a provider', flags: ['--model', 'gpt'], told: ['--model', 'provider/model'] },
    { name: 'with a URL that is none', flags: ['--model', 'local/some', '--model-url', 'what'], told: ['--model-url'] },
    { name: 'with a URL of no model', flags: ['--model-url', 'http://127.0.0.1:1'], told: ['--model-url', '--model'] },
  ]
  test.each(mistakes)('$name, and names the setting', async ({ flags, told }) => {
    const directory = `/tmp/threadbox-never-${crypto.randomUUID()}`
    const { code, stderr, stdout } = await command(['serve', '--port', '0', '--data-dir', directory, ...flags])
    Bun.spawnSync(['rm', '-rf', directory])
    expect([code === 0, stdout]).toEqual([false, ''])
    for (const word of told) expect(stderr).toContain(word)
    expect(stderr).not.toMatch(/\.ts:|node_modules| at /)
  })

  test('with a wrong key it starts: the first call tells', async () => {
    await using server = await startServer(optionsOf(modelSetups.slice(0, 1), model, 'sk-wrong'))
    model.play({ status: 401, message: 'invalid x-api-key' })
    const { chunks } = await agentServer(server, model, '').said('Hello.')
    expect(chunks.at(-2).errorText).toContain('invalid x-api-key')
  })
})
