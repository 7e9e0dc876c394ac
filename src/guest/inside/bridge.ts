import { connect, type Socket } from 'node:net'
import { TOKEN_VARIABLE } from '../wire/token-variable.ts'
import { eraseVariable } from './libc.ts'

/**
 * Where the guest of a container listens: a name in the container's network namespace, which nobody can take from
 * process 1 and which leaves no file.
 */
export const CONTAINER_ADDRESS = '\0threadbox'

/** A guest that starts on a cold, busy machine has been seen to need a second. */
const LISTENS_WITHIN_MS = 30_000
const POLL_MS = 5

/**
 * Joins this process's stdin and stdout to the guest of the container that the engine has brought it into. Resolves to
 * an exit code when either side has ended.
 */
export async function bridge(): Promise<number> {
  const token = process.env[TOKEN_VARIABLE]
  if (!token) throw new Error('the engine starts the bridge, inside a container')
  eraseVariable(TOKEN_VARIABLE)
  // The build's settings leave code that runs once at a start uncompiled.
  Bun.unsafe.setJITPolicy(1)
  const socket = await dial()
  const { promise, resolve } = Promise.withResolvers<number>()
  for (const stream of [socket, process.stdin, process.stdout]) stream.on('error', () => resolve(1))
  socket.on('close', () => resolve(0))
  process.stdin.on('end', () => resolve(0))
  socket.write(token)
  process.stdin.pipe(socket)
  socket.pipe(process.stdout)
  return promise
}

async function dial(): Promise<Socket> {
  for (const startedAt = performance.now(); ; await Bun.sleep(POLL_MS)) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const socket = connect({ path: CONTAINER_ADDRESS })
    socket.once('connect', resolve).once('error', reject)
    try {
      await promise
      return socket.off('error', reject)
    } catch (error) {
      socket.destroy()
      if (performance.now() - startedAt > LISTENS_WITHIN_MS) throw error
    }
  }
}
