import { expect, test } from 'bun:test'
import { bash, modelSetups, useAgentServer } from '../support/agent-server.ts'

const { model, said, threadOf } = useAgentServer(modelSetups.slice(0, 1))

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const todos = [{ content: 'Draw', status: 'in_progress', activeForm: 'Drawing' }]
const done = [{ ...todos[0], status: 'completed' }]

test('what tools make for people is in the message, and old clients see nothing of it', async () => {
  const write = (file_path: string) => ({ name: 'Write', input: { file_path, content: 'x' } })
  model.play(
    { calls: [{ name: 'TodoWrite', input: { todos } }, bash(`echo ${PNG} | base64 -d > dot.png`)] },
    { calls: [{ name: 'Read', input: { file_path: 'dot.png' } }, write('a.txt'), write('b.txt'), write('a.txt')] },
    { calls: [{ name: 'Edit', input: { file_path: 'missing', old_string: 'a', new_string: 'b' } }] },
    { calls: [{ name: 'TodoWrite', input: { todos: done } }] },
    { text: 'Drawn.' },
  )
  const { chunks, ...place } = await said('Draw.')
  const { messages } = await threadOf(place)
  const shown = messages.at(-1).parts.filter(({ type }: any) => /^(file|data-|source)/.test(type))
  expect(shown).toEqual([
    { type: 'data-todos', id: 'todos', data: { todos: done } },
    { type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${PNG}` },
    { type: 'data-changed-files', id: 'changed-files', data: { paths: ['a.txt', 'b.txt'] } },
  ])
  expect(chunks.filter(({ type }) => /^(file|data-|source)/.test(type))).toEqual([])
  expect(JSON.stringify(model.requests.at(-1)?.body)).not.toContain('changed-files')
})
