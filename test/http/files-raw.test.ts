import { beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})

const files = (method: string, rest: string, body?: unknown) =>
  app.ask(method, `/v1/sandboxes/${id}/files${rest}`, body)
const at = (path: string) => `?path=${encodeURIComponent(path)}`
const shell = (command: string) => app.shell(id, command)

for (const format of ['blob', 'stream']) {
  test(`50 MB go up and down with format=${format}`, async () => {
    const bytes = crypto.getRandomValues(new Uint8Array(64 * 1024))
    const content = new Blob(Array.from({ length: 800 }, () => bytes))
    const sum = new Bun.CryptoHasher('sha256').update(await content.arrayBuffer()).digest('hex')
    const answer = await files('POST', `${at('/raw/big')}&format=${format}`, content)
    expect(answer.body).toEqual({ files: [{ path: '/raw/big', size: 800 * 64 * 1024 }] })
    expect(await shell('sha256sum < /raw/big')).toBe(`${sum}  -\n`)

    const response = await app.request('GET', `/v1/sandboxes/${id}/files${at('/raw/big')}&format=${format}`)
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(new Bun.CryptoHasher('sha256').update(await response.arrayBuffer()).digest('hex')).toBe(sum)
  })
}

test('a body that streams in, of no known length', async () => {
  const pieces = Array.from({ length: 200 }, (_, n) => Buffer.from(`${n}\n`))
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.shift()
      if (piece) controller.enqueue(piece)
      else controller.close()
    },
  })
  await files('POST', `${at('/raw/stream')}&format=stream`, stream)
  expect(await shell('wc -l < /raw/stream; tail -1 /raw/stream')).toBe('200\n199\n')
})

test('an empty body makes an empty file', async () => {
  expect((await files('POST', `${at('/raw/empty')}&format=blob`)).body).toEqual({
    files: [{ path: '/raw/empty', size: 0 }],
  })
  const { status, body } = await files('GET', `${at('/raw/empty')}&format=blob`)
  expect({ status, body }).toEqual({ status: 200, body: '' })
})

test('bytes that are no text stay what they are', async () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, n) => n)
  await files('POST', `${at('/raw/bytes')}&format=blob`, bytes)
  const response = await app.request('GET', `/v1/sandboxes/${id}/files${at('/raw/bytes')}&format=blob`)
  expect(await response.bytes()).toEqual(bytes)
})

test('a download that is left in the middle leaves nothing open inside', async () => {
  await shell('mkdir -p /raw; truncate -s 1G /raw/left')
  const response = await app.request('GET', `/v1/sandboxes/${id}/files${at('/raw/left')}&format=stream`)
  const reader = response.body!.getReader()
  expect((await reader.read()).done).toBe(false)
  await reader.cancel()
  const holders = 'ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c /raw/left'
  await until(async () => (await app.exec(id, holders)).stdout === '0\n', 'nobody holds the file')
})

const draft = async () =>
  (await files('GET', `/list${at('/raw/cut')}`)).body.find(({ name }: any) => /draft/.test(name))

/** How a client sends a body that it never ends. */
const halves = {
  'with its length': ['content-length: 9000000', (bytes: Buffer) => bytes],
  'in chunks': [
    'transfer-encoding: chunked',
    (bytes: Buffer) => Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]),
  ],
} as const
test.each(Object.entries(halves))(
  'an upload %s whose client goes away changes nothing',
  async (_, [header, framed]) => {
    await shell('mkdir -p /raw/cut; echo whole >/raw/cut/file')
    const { hostname, port } = new URL(app.url)
    const path = `/v1/sandboxes/${id}/files${at('/raw/cut/file')}&format=stream`
    const socket = connect(Number(port), hostname)
    socket.write(`POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${app.key}\r\n${header}\r\n\r\n`)
    socket.write(framed(Buffer.alloc(2_000_000)))
    await until(async () => (await draft())?.size > 200_000, 'it is being written')
    expect(await shell('cat /raw/cut/file')).toBe('whole\n')
    socket.destroy()
    await until(async () => (await draft()) === undefined, 'nothing is left of it')
    expect(await shell('cat /raw/cut/file; ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c /raw/cut; :')).toBe('whole\n0\n')
    expect(app.log.filter(line => line.startsWith('error'))).toEqual([])
  },
)

test('missing files are told before the body begins', async () => {
  expect(codeOf(await files('GET', `${at('/raw/missing')}&format=stream`))).toBe('404 file_not_found')
})
