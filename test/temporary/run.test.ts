import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bash } from '../support/agent-server.ts'
import { startModelServer } from '../support/model-server.ts'
import { useOneOffs } from './support.ts'

const oneOffs = useOneOffs()

test('prints the reply, and what tools gave on stderr', async () => {
  const result = await oneOffs.run(['run', '--agent', 'echo', 'hello\n$ echo aside\nbye'])
  expect(result).toEqual({ code: 0, stdout: 'hello\nbye\n', stderr: '● Bash echo aside\naside\n' })
})

test('--quiet leaves out what tools gave', async () => {
  const result = await oneOffs.run(['run', '--quiet', '--agent', 'echo', 'hello\n$ echo aside\nbye'])
  expect(result).toEqual({ code: 0, stdout: 'hello\nbye\n', stderr: '' })
})

test('takes its prompt from a pipe', async () => {
  const { stdout } = await oneOffs.run(['run', '--agent', 'echo'], { stdin: 'piped in' })
  expect(stdout).toBe('piped in\n')
})

test('gives every chunk as a line of JSON', async () => {
  const { code, stdout } = await oneOffs.run(['run', '--json', '--agent', 'echo', '$ echo x'])
  const types = stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).type)
  expect(code).toBe(0)
  expect(types).toEqual([
    'start',
    'tool-input-start',
    'tool-input-available',
    'tool-output-available',
    'start-step',
    'message-metadata',
    'finish',
    'result',
  ])
})

describe('the last line of JSON', () => {
  const lastLine = async (args: string[], env = {}) => {
    const { code, stdout } = await oneOffs.run(['run', '--json', ...args], { env })
    return { code, result: JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') }
  }

  test('is the reply, its usage, its cost and the exit code', async () => {
    await using model = { server: startModelServer(), [Symbol.asyncDispose]: () => model.server.stop() }
    model.server.play({ text: 'First. ', calls: [bash('true')] }, { text: 'Second.' })
    const env = { ANTHROPIC_API_KEY: 'sk-test-key', ANTHROPIC_BASE_URL: model.server.access('anthropic').baseUrl }
    const { code, result } = await lastLine(['Go'], env)
    expect(code).toBe(0)
    expect(result).toEqual({
      type: 'result',
      text: 'First. Second.',
      usage: {
        inputTokens: expect.any(Number),
        outputTokens: expect.any(Number),
        totalTokens: expect.any(Number),
        durationMs: expect.any(Number),
      },
      costUsd: expect.any(Number),
      exitCode: 0,
    })
    expect(result.usage.outputTokens).toBeGreaterThan(0)
    expect(result.costUsd).toBeGreaterThan(0)
  })

  const failures: [string, string[], number, string][] = [
    ['says why a reply failed', ['--agent', 'echo', 'word\n/fail'], 1, 'fails because it was asked to'],
    ['says that what was to come out is not there', ['--agent', 'echo', '--out', 'none=none', 'word'], 125, ''],
    ['says which agent is missing', ['--agent', 'nobody', 'word'], 2, 'there is no agent nobody'],
    ['says which setting is wrong', ['--memory-mb', 'much', 'word'], 2, 'memory-mb'],
  ]
  test.each(failures)('%s', async (_, args, exitCode, error) => {
    const { code, result } = await lastLine(args)
    expect(code).toBe(exitCode)
    expect(result).toMatchObject({ type: 'result', exitCode, ...(error && { error: expect.stringContaining(error) }) })
  })
})

test('fails with the reply, and says why', async () => {
  const { code, stdout, stderr } = await oneOffs.run(['run', '--agent', 'echo', 'word\n/fail'])
  expect([code, stdout]).toEqual([1, 'word\n'])
  expect(stderr).toContain('fails because it was asked to')
})

test('has a model work on files that go in, and come out', async () => {
  await using model = { server: startModelServer(), [Symbol.asyncDispose]: () => model.server.stop() }
  model.server.play(
    { text: 'I fix it. ', calls: [bash('sed -i s/teh/the/ notes.txt; cat notes.txt')] },
    ({ results }) => ({
      text: `Now: ${results[0]?.trim()}`,
    }),
  )
  writeFileSync(join(oneOffs.directory, 'notes.txt'), 'teh end\n')
  const url = model.server.access('openai-chat').baseUrl
  const { code, stdout, stderr } = await oneOffs.run(
    [
      'run',
      '--model',
      'local/some',
      '--model-url',
      url,
      '--file',
      'notes.txt=notes.txt',
      '--out',
      'notes.txt=fixed.txt',
      'Fix',
      'it',
    ],
    { env: { THREADBOX_MODEL_KEY: 'sk-test-key' } },
  )
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'I fix it. \nNow: the end\n' })
  expect(stderr).toStartWith('● Bash ')
  expect(await Bun.file(join(oneOffs.directory, 'fixed.txt')).text()).toBe('the end\n')
})
