import { connect, createServer, type Socket } from 'node:net'

/** The parts of a request that tests look at. */
export interface Asked {
  method: string
  path: string
  /** The header that names a sandbox, for a request to one of its ports. */
  sandboxId: string | undefined
  /** The body of a JSON request that is for no sandbox. */
  body: any
}

/** The answer in place of the server's own. */
export interface Said {
  status: number
  headers?: Record<string, string>
  body?: object
}

/** A proxy in front of a server. It passes bytes on, and adds the faults that a test asks for. */
export interface FaultyProxy {
  url: string
  /** All requests, also those that the server itself never saw. */
  asked: Asked[]
  /** Answers in the server's place, which does not see the request. Undefined passes it on. */
  answer(asked: Asked): Said | undefined
  /** Says whether the answer is lost after the server has done its work: the client then gets 500. */
  isLost(asked: Asked): boolean
  /** The path of the request to the server. */
  rewrite(path: string): string
  close(): Promise<void>
}

/** Takes one request a connection, so that it sees the next one too. `address` is one of this machine; the default is 127.0.0.1. */
export async function openFaultyProxy(target: () => number, address = '127.0.0.1'): Promise<FaultyProxy> {
  const sockets = new Set<Socket>()
  const proxy: FaultyProxy = {
    url: '',
    asked: [],
    answer: () => undefined,
    isLost: () => false,
    rewrite: path => path,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
    void pass(proxy, socket, target())
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, address, resolve)
  await promise
  proxy.url = `http://${address}:${(server.address() as { port: number }).port}`
  return proxy
}

async function pass(proxy: FaultyProxy, socket: Socket, port: number): Promise<void> {
  const read = reading(socket)
  const head = await read(held => {
    const end = held.indexOf('\r\n\r\n')
    return end < 0 ? undefined : end + 4
  })
  if (!head) return void socket.destroy()
  const [line = '', ...headers] = head.toString('latin1').slice(0, -4).split('\r\n')
  const header = (name: string) =>
    headers
      .find(each => each.toLowerCase().startsWith(`${name}:`))
      ?.slice(name.length + 1)
      .trim()
  const [method = '', path = ''] = line.split(' ')
  const sandboxId = header('e2b-sandbox-id')
  const isTold = sandboxId === undefined && header('content-type')?.startsWith('application/json')
  const bytes = isTold ? Number(header('content-length') ?? 0) : 0
  const body = await read(held => (held.byteLength >= bytes ? bytes : undefined))
  if (!body) return void socket.destroy()
  const asked = { method, path, sandboxId, body: bytes > 0 ? JSON.parse(body.toString()) : undefined }
  proxy.asked.push(asked)
  const said = proxy.answer(asked)
  if (said) return void socket.end(textOf(said))
  const upstream = connect(port, '127.0.0.1')
  socket.on('close', () => upstream.destroy())
  upstream.on('error', () => socket.destroy())
  const kept = headers.filter(each => !/^connection:/i.test(each))
  upstream.write(
    [`${method} ${proxy.rewrite(path)} HTTP/1.1`, ...kept, 'Connection: close', '', ''].join('\r\n'),
    'latin1',
  )
  upstream.write(body)
  upstream.write(read.rest())
  socket.pipe(upstream)
  if (proxy.isLost(asked)) {
    upstream.once('data', () => {
      socket.end(textOf({ status: 500, body: { code: 500, message: 'lost' } }))
      upstream.destroy()
    })
    return
  }
  upstream.once('data', (first: Buffer) => {
    // Otherwise a client would send its next request over the same connection.
    const end = first.indexOf('\r\n') + 2
    socket.write(first.subarray(0, end))
    socket.write('Connection: close\r\n')
    socket.write(first.subarray(end))
    upstream.pipe(socket)
  })
  upstream.on('close', () => socket.destroySoon())
}

function textOf({ status, headers = {}, body }: Said): string {
  const text = body ? JSON.stringify(body) : ''
  const all = {
    'Content-Type': 'application/json',
    'Content-Length': `${text.length}`,
    Connection: 'close',
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status} Said`, ...lines, '', text].join('\r\n')
}

/** Reads the beginning of a connection's bytes, part by part. `lengthOf` returns a part's length once all of it is there. */
function reading(socket: Socket) {
  let held = Buffer.alloc(0)
  const read = (lengthOf: (held: Buffer) => number | undefined): Promise<Buffer | undefined> => {
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>()
    const look = (): void => {
      const length = lengthOf(held)
      if (length === undefined) return
      socket.off('data', take).pause()
      resolve(held.subarray(0, length))
      held = held.subarray(length)
    }
    const take = (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      look()
    }
    socket.on('data', take).once('close', () => resolve(undefined))
    // A listener alone does not resume a stream that was paused.
    socket.resume()
    look()
    return promise
  }
  return Object.assign(read, { rest: () => held })
}
