import { connect, type Socket } from 'node:net'
import { type Call, lanes } from '../wire/call.ts'
import { GuestError } from '../wire/requests.ts'

/** Joins a call to a server on this sandbox's loopback, until both directions have ended. */
export async function relay(call: Call, port: number): Promise<void> {
  const socket = (await dial('127.0.0.1', port)) ?? (await dial('::1', port))
  if (!socket) throw new GuestError('port_unreachable', `Nothing listens on port ${port}.`)
  socket.on('error', () => call.close())
  void call.result.finally(() => socket.destroy()).catch(() => {})
  call.answer({})

  const up = async () => {
    for (let chunk = await call.read(lanes.up); chunk; chunk = await call.read(lanes.up)) {
      if (!socket.write(chunk)) await new Promise(resolve => socket.once('drain', resolve).once('close', resolve))
    }
    socket.end()
  }
  const down = async () => {
    // The usual iterator destroys the socket at its end: what is still to come the other way would be lost.
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) await call.send(lanes.down, chunk)
    call.end(lanes.down)
  }
  await Promise.all([up(), down()])
}

/** By address: a name would be looked up by libraries that the sandbox's own /etc names. */
async function dial(host: string, port: number): Promise<Socket | undefined> {
  const socket = connect({ host, port, allowHalfOpen: true })
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  return (await promise) ? socket : undefined
}
