import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connectGuest, type GuestConnection } from '../../../src/guest/host/connect.ts'
import type { EnvironmentPaths } from '../host/layout.ts'
import { openShortPath } from '../host/linux.ts'

/** Connects to the guest of a running jail. Rejects when the guest does not listen, ends, or is silent for `timeoutMs`. */
export async function dialGuest(
  paths: EnvironmentPaths,
  timeoutMs: number,
  onProxy: (socket: Duplex) => void,
): Promise<GuestConnection> {
  const socket = await dial(paths)
  const timer = setTimeout(() => socket.destroy(new Error('the guest does not answer')), timeoutMs)
  try {
    return await connectGuest(socket, { onProxy })
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

async function dial(paths: EnvironmentPaths): Promise<Socket> {
  const short = openShortPath(paths.socket)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  try {
    const socket = connect({ path: short.path })
    socket.once('connect', resolve)
    socket.once('error', reject)
    await promise
    socket.off('error', reject)
    return socket
  } finally {
    short.close()
  }
}
