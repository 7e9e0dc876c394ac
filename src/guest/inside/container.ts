import { timingSafeEqual } from 'node:crypto'
import { chmodSync, mkdirSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { TOKEN_VARIABLE } from '../wire/token-variable.ts'
import { CONTAINER_ADDRESS } from './bridge.ts'
import { eraseVariable } from './libc.ts'
import { hasNetworkPower } from './network-power.ts'
import { openGuest } from './serve.ts'

/** Connections that have not shown the token yet; more are closed, or a sandbox could use up its guest's descriptors. */
const MAX_STRANGERS = 16
const TOKEN_WITHIN_MS = 5000

/** What every sandbox has, whatever its image lacks. */
const directories = { '/home/user': 0o755, '/tmp': 0o1777, '/var/tmp': 0o1777 }

/** The guest as process 1 of a container. Never ends on its own. */
export async function serveContainer(): Promise<void> {
  const token = Buffer.from(process.env[TOKEN_VARIABLE] ?? '')
  if (token.byteLength === 0) throw new Error('the engine starts the guest, inside a container')
  // Any process that reads the token may drive the guest. Only root can, but many programs of root read files for others.
  eraseVariable(TOKEN_VARIABLE)
  // Nothing else runs yet, so that nobody inside can interfere.
  const networkTrouble = hasNetworkPower() ? (await import('./own-stack.ts')).takeOwnNetwork() : undefined
  const accept = openGuest({ networkTrouble })
  for (const [path, mode] of Object.entries(directories))
    if (mkdirSync(path, { recursive: true })) chmodSync(path, mode)
  let strangers = 0
  const server = createServer(socket => {
    if (strangers >= MAX_STRANGERS) return void socket.destroy()
    strangers += 1
    void hear(socket, token.byteLength).then(said => {
      strangers -= 1
      if (said && timingSafeEqual(said, token)) accept(socket)
      else socket.destroy()
    })
  })
  server.listen(CONTAINER_ADDRESS)
}

/** The first bytes of a connection, in one piece; undefined when they are not as many, or do not come. */
function hear(socket: Socket, byteLength: number): Promise<Buffer | undefined> {
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>()
  const timer = setTimeout(resolve, TOKEN_WITHIN_MS, undefined)
  const give = (bytes?: Buffer) => resolve(bytes?.byteLength === byteLength ? bytes : undefined)
  socket.once('data', give)
  for (const event of ['end', 'error', 'close']) socket.once(event, () => give())
  return promise.finally(() => clearTimeout(timer))
}
