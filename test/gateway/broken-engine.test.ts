import { expect, test } from 'bun:test'
import type { Engine, ModelAccess } from '../../src/plugin-api/index.ts'
import { cleanUpAfterEach } from '../runs/support.ts'
import { chatApp } from './chat-app.ts'

cleanUpAfterEach()

test('the token of an engine that throws before its first event ends with the run: regression', async () => {
  const app = await chatApp()
  let access: ModelAccess | undefined
  const engine: Engine = {
    name: 'model',
    run(_, { openModel }) {
      access = openModel()
      throw new Error('broken engine')
    },
  }
  ;(app.runtime.engines as Map<string, Engine>).set('model', engine)
  const { body } = await app.chat('coder', 'hi')
  expect((await app.frames(body)).map(({ chunk }) => chunk.type)).toContain('error')
  const answer = await access!.fetch(`${access!.baseUrl}/models`, { headers: { 'x-api-key': access!.token } })
  expect(answer.status).toBe(401)
})
