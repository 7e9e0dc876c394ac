import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { messageOf } from '../../src/errors.ts'
import { objectOf, parseJson } from '../../src/read/json.ts'
import type { Address } from './address.ts'
import { demultiplex, type ProcessStream } from './demultiplex.ts'
import { EngineError, EngineLost } from './failure.ts'

const MAX_HEAD_BYTES = 64 * 1024
const ANSWERS_WITHIN_MS = 60_000
/** So a remote engine that vanished without closing its connection is noticed. */
const KEEPALIVE_MS = 30_000

/** Sends a POST whose connection becomes a process's stdin and stdout. Bun's fetch cannot send after an answer has begun. */
export async function hijack(address: Address, path: string, body: unknown): Promise<ProcessStream> {
  const socket = await dial(address)
  const text = JSON.stringify(body)
  socket.write(
    [
      `POST ${path} HTTP/1.1`,
      'Host: docker',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(text)}`,
      'Connection: Upgrade',
      'Upgrade: tcp',
      '',
      text,
    ].join('\r\n'),
  )
  try {
    const { status, head, rest } = await readAnswer(socket)
    if (status === 101 || (status === 200 && /^content-type: application\/vnd\.docker\./im.test(head))) {
      return demultiplex(socket, rest)
    }
    const message = objectOf(parseJson(rest.toString('utf8')))?.message
    throw new EngineError(status, String(message ?? head.split('\r\n')[0]))
  } catch (error) {
    socket.destroy()
    throw error instanceof EngineError ? error : new EngineLost(`The Docker engine broke off: ${messageOf(error)}`)
  }
}

async function dial(address: Address): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = 'socket' in address ? connectPlain({ path: address.socket, allowHalfOpen: true }) : dialHost(address)
  socket.once('tls' in address && address.tls ? 'secureConnect' : 'connect', resolve)
  socket.once('error', reject)
  try {
    await promise
    socket.off('error', reject)
    if (!('socket' in address)) socket.setKeepAlive(true, KEEPALIVE_MS).setNoDelay(true)
    return socket
  } catch (error) {
    socket.destroy()
    throw new EngineLost(`The Docker engine does not answer: ${messageOf(error)}`)
  }
}

function dialHost({ host, port, tls }: Extract<Address, { host: string }>): Socket {
  if (!tls) return connectPlain({ host, port, allowHalfOpen: true })
  return connectTls({ host, port, ...(isIP(host) === 0 && { servername: host }), ...tls })
}

/** Reads an answer's head and the bytes that came with it; of a refusal, its whole short body. */
function readAnswer(socket: Socket): Promise<{ status: number; head: string; rest: Buffer }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; head: string; rest: Buffer }>()
  let received = Buffer.alloc(0)
  const parse = (isOver: boolean) => {
    const end = received.indexOf('\r\n\r\n')
    if (end < 0) {
      if (isOver || received.byteLength > MAX_HEAD_BYTES) reject(new Error('it did not answer'))
      return
    }
    const head = received.toString('latin1', 0, end)
    const rest = received.subarray(end + 4)
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1])
    if (!status) return reject(new Error('it does not speak HTTP'))
    const length = status === 101 ? 0 : Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
    if (rest.byteLength >= Math.min(length, MAX_HEAD_BYTES) || isOver) resolve({ status, head, rest })
  }
  const receive = (bytes: Buffer) => {
    received = Buffer.concat([received, bytes])
    parse(false)
  }
  const finish = () => parse(true)
  const timer = setTimeout(() => reject(new Error('it does not answer')), ANSWERS_WITHIN_MS)
  socket.on('data', receive).once('end', finish).once('close', finish).once('error', reject)
  return promise.finally(() => {
    clearTimeout(timer)
    socket.off('data', receive).off('end', finish).off('close', finish).off('error', reject)
  })
}
