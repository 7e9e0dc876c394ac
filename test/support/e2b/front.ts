import { createServer, type Socket } from 'node:net'
import type { Box } from './box.ts'

const ENVD_PORT = 49_983

/**
 * What stands before the sandboxes: finds one by the headers that the SDK sends, with `hasHosts` also by the host, wants the token of
 * one whose traffic is private, and passes the connection on to its port inside. One request a connection, since the next may be
 * for another sandbox.
 */
export async function openFront(
  boxes: ReadonlyMap<string, Box>,
  answer: (path: string) => string | undefined,
  hasHosts: boolean,
) {
  const sockets = new Set<Socket>()

  async function serve(socket: Socket): Promise<void> {
    const head = await readHead(socket)
    if (!head) return void socket.destroy()
    const header = (name: string) => new RegExp(`^${name}: *(.*?)\r$`, 'im').exec(head.text)?.[1]
    const path = head.text.split(' ', 2)[1] ?? ''
    const said = answer(path)
    if (said !== undefined) return void socket.end(said)
    const [, hostPort = ENVD_PORT, hostId = ''] = /^(\d+)-([^.]+)\./.exec((hasHosts && header('host')) || '') ?? []
    const id = header('e2b-sandbox-id') ?? hostId
    const port = Number(header('e2b-sandbox-port') ?? hostPort)
    const box = boxes.get(id)
    if (box?.state !== 'running') return void socket.end(refusal('502 Bad Gateway', id, 'The sandbox was not found'))
    const isOpen = port === ENVD_PORT || (header('e2b-traffic-access-token') ?? '') === (box.trafficToken ?? '')
    if (!isOpen) return void socket.end(refusal('403 Forbidden', id, 'Sandbox is secured with traffic access token'))
    const inside = await box.environment.connect(port).catch(() => undefined)
    if (!inside) return void socket.end(refusal('502 Bad Gateway', id, 'The sandbox was not found'))
    const cut = () => {
      socket.destroy()
      inside.destroy()
    }
    box.connections.add(cut)
    for (const stream of [socket, inside]) stream.on('error', cut)
    socket.on('close', () => {
      box.connections.delete(cut)
      inside.destroy()
    })
    inside.on('close', () => socket.destroySoon())
    inside.write(head.text.replace(/^connection:.*\r\n/im, '').replace('\r\n', '\r\nConnection: close\r\n'))
    if (head.rest.byteLength > 0) inside.write(head.rest)
    socket.pipe(inside)
    inside.once('data', (first: Buffer) => {
      // Else a client would send its next request the same way.
      const line = first.indexOf('\r\n') + 2
      socket.write(first.subarray(0, line))
      socket.write('Connection: close\r\n')
      socket.write(first.subarray(line))
      inside.pipe(socket)
    })
  }

  const server = createServer({ allowHalfOpen: false }, socket => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
    void serve(socket)
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

function readHead(socket: Socket): Promise<{ text: string; rest: Buffer } | undefined> {
  let held = Buffer.alloc(0)
  return new Promise(resolve => {
    const take = (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      const end = held.indexOf('\r\n\r\n')
      if (end < 0) return
      socket.off('data', take).pause()
      resolve({ text: held.subarray(0, end + 4).toString('latin1'), rest: held.subarray(end + 4) })
    }
    socket.on('data', take).once('close', () => resolve(undefined))
  })
}

function refusal(status: string, sandboxId: string, message: string): string {
  const body = JSON.stringify({ sandboxId, message, code: Number.parseInt(status, 10) })
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `${head}Connection: close\r\n\r\n${body}`
}
