import { expect, test } from 'bun:test'
import { useServer } from '../support/server.ts'

const server = useServer()

const program = `
import socket
s = socket.socket(); s.bind(("127.0.0.1", 8213)); s.listen(); open("/tmp/listens", "w").close()
while True: c, _ = s.accept(); c.recv(10000); c.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: 10\\r\\n\\r\\nabc"); c.close()
`

test('an answer whose body breaks leaves no stack on the terminal: regression', async () => {
  const sandbox = await server.sandbox()
  await server.ask('POST', `/v1/sandboxes/${sandbox}/files`, { path: '/tmp/server.py', content: program })
  await server.exec(sandbox, 'python3 /tmp/server.py >/dev/null 2>&1 & until [ -e /tmp/listens ]; do sleep 0.02; done')
  const response = await fetch(`${server.url}/v1/sandboxes/${sandbox}/ports/8213/`, {
    headers: { authorization: `Bearer ${server.key}` },
  })
  expect(response.status).toBe(200)
  await expect(response.text()).rejects.toThrow()
  await server.ask('DELETE', `/v1/sandboxes/${sandbox}`)
  expect(server.stderr).not.toMatch(/^\s*at |^error: |\|/m)
})
