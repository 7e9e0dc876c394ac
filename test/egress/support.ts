import { connect, createServer, type Server, type Socket } from 'node:net'
import { createEgress, type Egress } from '../../src/egress/egress.ts'
import type { LocalHandler } from '../../src/egress/local.ts'
import type { Policy } from '../../src/egress/policy.ts'
import { parseRules } from '../../src/egress/rules.ts'

export const SANDBOX = 'env_test'

/** Allows what is on 127.0.0.2 and the addresses around it, as an operator who permits it would. */
export const loopback: Policy = {
  mode: 'public',
  ceiling: parseRules(['127.0.0.0/8']),
  layers: [{ allow: parseRules(['127.0.0.0/8']), deny: [] }],
}

export const openPolicy: Policy = { mode: 'public', ceiling: [], layers: [] }

export interface Bench {
  egress: Egress
  port: number
  lines: string[]
  asked: string[]
  policy: Policy
  close(): void
}

/** The proxy behind a TCP port; names are resolved by the table alone. */
export async function openBench(
  policy: Policy,
  names: Record<string, string[] | (() => string[])> = {},
  local?: LocalHandler,
): Promise<Bench> {
  const lines: string[] = []
  const asked: string[] = []
  const egress = createEgress({
    policyOf: () => bench.policy,
    log: line => lines.push(line),
    ...(local && { local }),
    async resolve(name) {
      asked.push(name)
      const found = names[name]
      if (!found) throw new Error('not known')
      return typeof found === 'function' ? found() : found
    },
  })
  const server = createServer({ allowHalfOpen: true }, socket => egress.serve(SANDBOX, socket))
  const port = await listen(server, '127.0.0.1')
  const close = () => {
    egress.close()
    server.close()
  }
  const bench: Bench = { egress, port, lines, asked, policy, close }
  return bench
}

/** Its port. */
export async function listen(server: Server, host: string): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  const address = server.address()
  if (!address || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** Connects, sends, and gives all that comes until the other side ends; `keep` leaves this side open. */
export async function say(port: number, text: string | Buffer, { end = false } = {}): Promise<string> {
  const socket = await dialed(port)
  socket.write(text)
  if (end) socket.end()
  return await all(socket)
}

export async function dialed(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  await new Promise<void>((resolve, reject) => void socket.once('connect', resolve).once('error', reject))
  return socket
}

export async function all(socket: Socket): Promise<string> {
  let text = ''
  socket.on('error', () => {})
  for await (const chunk of socket) text += chunk.toString('latin1')
  socket.destroy()
  return text
}

/** Reads until the text so far ends with or has this. */
export async function until(socket: Socket, mark: string): Promise<string> {
  let text = ''
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const onData = (chunk: Buffer) => {
    text += chunk.toString('latin1')
    if (text.includes(mark)) resolve(text)
  }
  socket.on('data', onData).once('close', () => reject(new Error(`closed after ${text}`)))
  try {
    return await promise
  } finally {
    socket.off('data', onData)
  }
}
