import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { patiently, startServer } from '../support/server.ts'

patiently()

/** Resolves with what was answered when the server closes the connection. */
function untilClosed(port: number, request: string): Promise<string> {
  const socket = connect(port, '127.0.0.1', () => socket.write(request))
  return new Promise(resolve => {
    let answer = ''
    socket.on('data', bytes => {
      answer += bytes
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
  })
}

test('a silent connection is closed unless its sender has shown a key: regression', async () => {
  await using server = await startServer()
  const port = Number(new URL(server.url).port)
  const id = await server.sandbox({ agent: 'echo' })
  const closed = [
    untilClosed(port, ''),
    untilClosed(port, 'GET /v1/sandboxes HTTP/1.1\r\nhost: x\r\n\r\n'),
    untilClosed(port, 'POST /v1/sandboxes HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{'),
  ]
  const slow = server.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'sleep 16; echo done' })
  const [, refused] = await Promise.all(closed)
  expect(refused).toStartWith('HTTP/1.1 401')
  expect((await slow).body).toMatchObject({ stdout: 'done\n', exitCode: 0 })
})
