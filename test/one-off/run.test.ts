import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bash } from '../support/agent-server.ts'
import { startModelServer } from '../support/model-server.ts'
import { useOneOffs } from './support.ts'

const oneOffs = useOneOffs()

test('prints the reply, and nothing else', async () => {
  const result = await oneOffs.run(['run', '--agent', 'echo', 'hello\n$ echo not shown\nbye'])
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
    'message-metadata',
    'finish',
  ])
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
    { env: { THREADBOX_MODEL_KEY: 'sk-test' } },
  )
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'I fix it. \nNow: the end\n', stderr: '' })
  expect(await Bun.file(join(oneOffs.directory, 'fixed.txt')).text()).toBe('the end\n')
})
