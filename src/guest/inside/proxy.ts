import { chmodSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Call, lanes } from '../wire/call.ts'
import type { Channel } from '../wire/channel.ts'
import { type Connection, listen } from '../wire/connection.ts'
import { PROXY_HOST, PROXY_PORT } from '../wire/proxy-variables.ts'
import { type DirectRequest, MAX_PROXY_CALLS } from '../wire/requests.ts'

const SSH_AGENT_SOCKET = '/run/threadbox/ssh-agent.sock'

/** The way from the proxy's address inside to the servers that are connected. */
export interface ProxyGate {
  /** Listens at the proxy's address, unless another process does. */
  listen(): void
  /** Has a server take a connection that is meant for what the request says. It is reset where no server does, or refuses it. */
  take(connection: Connection, request: DirectRequest): void
  /** Makes the socket of an SSH agent, unless it is there. Gives its path. Throws when that is not possible. */
  listenForSshAgent(): string
  /** The newest that is open takes what is connected from now on. */
  add(channel: Channel): void
}

/** Makes the gate, which does not listen yet. A connection that no server would take is closed at once. */
export function createProxyGate(): ProxyGate {
  const channels: Channel[] = []
  let connections = 0
  let hasAgent = false
  const join = (connection: Connection, request: { op: 'proxy' | 'ssh-agent' } | DirectRequest, cut: () => void) => {
    const channel = channels.findLast(each => each.isOpen)
    if (!channel || connections >= MAX_PROXY_CALLS) return cut()
    connections++
    void carry(channel.open(request), connection, cut).finally(() => connections--)
  }

  return {
    listen() {
      try {
        listen({ hostname: PROXY_HOST, port: PROXY_PORT }, connection =>
          join(connection, { op: 'proxy' }, connection.destroy),
        )
      } catch {
        // Another process has the port: then programs inside have no proxy, and all else works.
      }
    },
    take: (connection, request) => join(connection, request, connection.reset),
    listenForSshAgent() {
      // The file there belonged to a guest that has ended, or can no longer be reached.
      if (hasAgent && existsSync(SSH_AGENT_SOCKET)) return SSH_AGENT_SOCKET
      mkdirSync(dirname(SSH_AGENT_SOCKET), { recursive: true })
      rmSync(SSH_AGENT_SOCKET, { force: true })
      listen({ unix: SSH_AGENT_SOCKET }, connection => join(connection, { op: 'ssh-agent' }, connection.destroy))
      // Every user inside may connect.
      chmodSync(SSH_AGENT_SOCKET, 0o666)
      hasAgent = true
      return SSH_AGENT_SOCKET
    },
    add(channel) {
      channels.push(channel)
      void channel.closed.then(() => channels.splice(channels.indexOf(channel), 1))
    },
  }
}

/**
 * Joins a connection to a call of this side until both directions have ended, or one of the two is gone. `cut` ends the connection
 * where the server has closed the call before its side of it had ended.
 */
async function carry(call: Call, connection: Connection, cut: () => void): Promise<void> {
  connection.on('close', () => call.close())
  const close = async () => {
    await connection.drained()
    connection.destroy()
  }
  const up = async () => {
    await connection.readAll(bytes => call.send(lanes.up, bytes))
    call.end(lanes.up)
  }
  const down = async () => {
    for (let chunk = await call.read(lanes.down); chunk; chunk = await call.read(lanes.down)) {
      connection.write(chunk)
      await connection.drained()
    }
    if (!call.hasEnded(lanes.down)) {
      await connection.drained()
      return cut()
    }
    connection.end()
    // The server has closed: what it had said is still delivered, and no more is taken.
    if (call.isOver) await close()
  }
  await Promise.all([up(), down()]).catch(() => {})
  await close()
  call.close()
}
