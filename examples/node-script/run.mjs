// A sandbox, a file, a command and a chat from Node 18 or newer, without a package.
const { THREADBOX_URL = 'http://127.0.0.1:7070', THREADBOX_API_KEY } = process.env

async function call(method, path, body) {
  const response = await fetch(`${THREADBOX_URL}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${THREADBOX_API_KEY}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error((await response.json()).message)
  return response
}
const ask = async (...request) => (await call(...request)).json()

const { id } = await ask('POST', '/sandboxes', { agent: 'echo' })
try {
  await ask('POST', `/sandboxes/${id}/files`, { path: '/home/user/numbers.txt', content: '3\n1\n2\n' })
  const { stdout } = await ask('POST', `/sandboxes/${id}/exec`, { command: 'sort numbers.txt | tr "\\n" " "' })
  console.log(`sorted: ${stdout.trim()}`)

  const messages = [{ role: 'user', parts: [{ type: 'text', text: 'Hello from Node' }] }]
  const reply = await call('POST', '/chat/echo', { sandboxId: id, messages })
  let text = ''
  for await (const bytes of reply.body.pipeThrough(new TextDecoderStream())) text += bytes
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: {')) continue
    const chunk = JSON.parse(line.slice('data: '.length))
    if (chunk.type === 'text-delta') process.stdout.write(chunk.delta)
  }
  console.log()
} finally {
  await call('DELETE', `/sandboxes/${id}`)
}
