import { expect, test } from 'bun:test'
import { patiently, startServer } from '../support/server.ts'

patiently()

test('a sandbox that nobody uses stops, which its team is told', async () => {
  await using server = await startServer({ flags: ['--idle-ms', '2000', '--spares', '0'] })
  const response = await server.request('GET', '/v1/events?types=sandbox.stopped')
  const id = await server.sandbox()
  await server.exec(id, 'true')
  let text = ''
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece
    if (text.includes('data: ')) break
  }
  expect(text).toContain(`"type":"sandbox.stopped","sandboxId":"${id}"`)
  expect((await server.ask('GET', `/v1/sandboxes/${id}`)).body.isRunning).toBe(false)
})
