import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { CLASS_INTERNET, codes, type DnsRecord, types } from './message.ts'
import { encodeName, type ReadAnswer, readAnswer } from './records.ts'

/** The records of a kind that a name has. Rejects with the code ENOTFOUND for a name that does not exist. */
export type FindRecords = (name: string, type: number) => Promise<DnsRecord[]>

/** The address of a resolver. */
export interface Server {
  host: string
  port: number
}

/** The C library uses at most this many. */
const MAX_SERVERS = 3
const ROUNDS = 2
const MAX_ANSWER_BYTES = 65_535
/** The largest answer that arrives over UDP without fragments. */
const UDP_BYTES = 1232

/** The resolvers in this machine's resolv.conf; when it names none, the default one. */
export function systemServers(path = '/etc/resolv.conf'): Server[] {
  const hosts = [...readText(path).matchAll(/^[ \t]*nameserver[ \t]+([0-9a-f:.]+(?:%[\w.-]+)?)/gim)].map(
    ([, host = '']) => host,
  )
  return (hosts.length > 0 ? hosts : ['127.0.0.1']).slice(0, MAX_SERVERS).map(host => ({ host, port: 53 }))
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

export interface UpstreamParts {
  servers?: () => readonly Server[]
  /** How long each of them may take. Default 2000. */
  answersWithinMs?: number
}

/** Asks one resolver after the other, over UDP, and over TCP for what does not fit. */
export function createFindRecords({
  servers = systemServers,
  answersWithinMs = 2000,
}: UpstreamParts = {}): FindRecords {
  return async (name, type) => {
    const question = Buffer.concat([encodeName(name), Uint8Array.of(type >> 8, type & 255, 0, CLASS_INTERNET)])
    for (let round = 0; round < ROUNDS; round++) {
      for (const server of servers()) {
        const { code, records } = (await ask({ ...server, withinMs: answersWithinMs }, question, type)) ?? {
          code: codes.failed,
          records: [],
        }
        if (code === codes.success) return records
        if (code === codes.noSuchName) throw Object.assign(new Error('there is no such name'), { code: 'ENOTFOUND' })
      }
    }
    throw new Error('no resolver has answered')
  }
}

/** Undefined when there is no answer in time. */
async function ask(server: Asked, question: Uint8Array, type: number): Promise<ReadAnswer | undefined> {
  const id = crypto.getRandomValues(new Uint16Array(1))[0] ?? 0
  const read = (message: Uint8Array) => readAnswer(message, id, question, type)
  const plain = encodeQuery(id, question, false)
  const answer = await askOverUdp(server, encodeQuery(id, question, true), read)
  // A resolver that does not know EDNS answers so, and is asked without it.
  const again = answer?.code === codes.malformed || answer?.code === codes.notImplemented
  const final = again ? await askOverUdp(server, plain, read) : answer
  return final?.isTruncated ? await askOverTcp(server, plain, read) : final
}

interface Asked extends Server {
  withinMs: number
}

type Read = (message: Uint8Array) => ReadAnswer | undefined

const RECURSION_DESIRED = 0x0100

function encodeQuery(id: number, question: Uint8Array, hasEdns: boolean): Uint8Array {
  const head = Buffer.alloc(12)
  for (const [index, value] of [id, RECURSION_DESIRED, 1, 0, 0, hasEdns ? 1 : 0].entries())
    head.writeUInt16BE(value, index * 2)
  const option = Uint8Array.of(0, 0, types.OPT, UDP_BYTES >> 8, UDP_BYTES & 255, 0, 0, 0, 0, 0, 0)
  return Buffer.concat([head, question, ...(hasEdns ? [option] : [])])
}

/** Asks from a random port, which nobody can guess. Packets that do not answer the question are ignored. */
async function askOverUdp(
  { host, port, withinMs }: Asked,
  query: Uint8Array,
  read: Read,
): Promise<ReadAnswer | undefined> {
  const { promise, resolve } = Promise.withResolvers<ReadAnswer | undefined>()
  const socket = await Bun.udpSocket({
    connect: { hostname: host, port },
    socket: {
      data(_socket, bytes) {
        const answer = read(bytes)
        if (answer) resolve(answer)
      },
      error: () => resolve(undefined),
    },
  }).catch(() => undefined)
  if (!socket) return undefined
  const timer = setTimeout(resolve, withinMs)
  try {
    socket.send(query)
    return await promise
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}

async function askOverTcp(
  { host, port, withinMs }: Asked,
  query: Uint8Array,
  read: Read,
): Promise<ReadAnswer | undefined> {
  const { promise, resolve } = Promise.withResolvers<ReadAnswer | undefined>()
  const socket = connect({ host, port })
  const timer = setTimeout(resolve, withinMs)
  const chunks: Buffer[] = []
  let length = 0
  socket.on('error', () => resolve(undefined)).on('close', () => resolve(undefined))
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.byteLength
    const whole = length < 2 ? undefined : Buffer.concat(chunks, length)
    const wanted = whole ? 2 + whole.readUInt16BE(0) : MAX_ANSWER_BYTES
    if (whole && length >= wanted) resolve(read(whole.subarray(2, wanted)))
  })
  try {
    socket.write(Buffer.concat([Uint8Array.of(query.byteLength >> 8, query.byteLength & 255), query]))
    const answer = await promise
    return answer?.isTruncated ? undefined : answer
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}
