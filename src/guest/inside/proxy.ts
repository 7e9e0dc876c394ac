import { createServer, type Socket } from 'node:net'
import { type Call, lanes } from '../wire/call.ts'
import type { Channel } from '../wire/channel.ts'
import { PROXY_HOST, PROXY_PORT } from '../wire/proxy-variables.ts'
import { MAX_PROXY_CALLS } from '../wire/requests.ts'

/** The way from the proxy's address inside to the servers that are connected. */
export interface ProxyGate {
  /** The newest that is open takes what is connected from now on. */
  add(channel: Channel): void
}

/** Listens at the proxy's address. A connection that no server would take is closed at once. */
export function listenForProxy(): ProxyGate {
  const channels: Channel[] = []
  let connections = 0
  const server = createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => socket.destroy())
    const channel = channels.findLast(each => each.isOpen)
    if (!channel || connections >= MAX_PROXY_CALLS) return void socket.destroy()
    connections++
    void carry(channel.open({ op: 'proxy' }), socket).finally(() => connections--)
  })
  // Somebody has the port: what runs inside has no proxy then, and all else works.
  server.on('error', () => {})
  server.listen({ host: PROXY_HOST, port: PROXY_PORT })

  return {
    add(channel) {
      channels.push(channel)
      void channel.closed.then(() => channels.splice(channels.indexOf(channel), 1))
    },
  }
}

/** Joins a connection to a call of this side until both directions have ended, or one of the two is gone. */
async function carry(call: Call, socket: Socket): Promise<void> {
  socket.on('close', () => call.close())
  const up = async () => {
    // The usual iterator destroys the socket at its end: the answer would be lost.
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) await call.send(lanes.up, chunk)
    call.end(lanes.up)
  }
  const down = async () => {
    for (let chunk = await call.read(lanes.down); chunk; chunk = await call.read(lanes.down)) {
      if (!socket.write(chunk)) await new Promise(resolve => socket.once('drain', resolve).once('close', resolve))
    }
    // The server has closed: what it had said is still delivered, and no more is taken.
    if (call.isOver) socket.end(() => socket.destroy())
    else socket.end()
  }
  await Promise.all([up(), down()]).catch(() => socket.destroy())
  call.close()
}
