import { messageOf } from '../../../src/errors.ts'
import { connectGuest, type GuestConnection } from '../../../src/guest/host/connect.ts'
import type { OnDirect, Outlets } from '../../../src/guest/host/outlets.ts'
import { type Connection, dial } from '../../../src/guest/wire/connection.ts'
import type { EnvironmentPaths, Host } from '../host/layout.ts'
import { openShortPath } from '../host/linux.ts'
import { listenForDirect, redirectToGuest } from './direct-listener.ts'
import { openGuestDescriptors } from './guest-descriptors.ts'
import { connectToJail } from './jail-network.ts'
import { listenForProxy } from './proxy-listener.ts'

export interface GuestToDial {
  host: Host
  paths: EnvironmentPaths
  /** The pid of its nsjail. */
  nsjail: number
  outlets: Outlets
}

export interface DialledGuest {
  connection: GuestConnection
  /** The reason why programs inside reach the server only by its proxy. Absent when they may connect to any address. */
  onlyProxy?: string
}

/** Connects to the guest of a running jail. Rejects when the guest does not listen, ends, or is silent for `timeoutMs`. */
export async function dialGuest(guest: GuestToDial, timeoutMs: number): Promise<DialledGuest> {
  const { host, paths, nsjail, outlets } = guest
  const stream = await dialShort(paths.socket)
  const timer = setTimeout(stream.destroy, timeoutMs)
  try {
    const connection = await connectGuest(stream, {
      ...outlets,
      openDescriptors: () => openGuestDescriptors(nsjail),
      ...(host.isRoot && { connectDirectly: port => connectToJail(nsjail, port) }),
    })
    if (host.isRoot) takeProxy(connection, guest)
    const onlyProxy = await takeDirect(connection, guest)
    // Only with the redirection do the addresses that names have lead anywhere.
    if (onlyProxy === undefined) connection.answerNames()
    return { connection, ...(onlyProxy !== undefined && { onlyProxy }) }
  } catch (error) {
    stream.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** The guest listens where this server may not listen, or where a guest of an earlier version listens already. */
function takeProxy(connection: GuestConnection, { nsjail, outlets }: GuestToDial): void {
  try {
    const listener = listenForProxy(nsjail, outlets.onProxy)
    void connection.closed.then(listener.close)
  } catch {
    connection.listenForProxy()
  }
}

/** The guest listens where this server may not listen. Returns the reason when neither is possible. */
async function takeDirect(connection: GuestConnection, guest: GuestToDial): Promise<string | undefined> {
  if (!guest.outlets.onDirect) return 'nobody takes it'
  if (guest.host.isRoot && listensFor(connection, guest, guest.outlets.onDirect)) return undefined
  try {
    await redirectToGuest(connection)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function listensFor(connection: GuestConnection, { nsjail }: GuestToDial, onDirect: OnDirect): boolean {
  try {
    const listener = listenForDirect(nsjail, onDirect)
    void connection.closed.then(listener.close)
    return true
  } catch {
    return false
  }
}

async function dialShort(path: string): Promise<Connection> {
  const short = openShortPath(path)
  try {
    return await dial(short.path)
  } finally {
    short.close()
  }
}
