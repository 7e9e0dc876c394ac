import type { Readable, Transform } from 'node:stream'
import type { Header } from '../../http1/head.ts'
import { HttpError } from '../../http1/http-error.ts'
import type { Target } from '../policy.ts'
import type { BoundSecret, SecretUse } from './binding.ts'
import { type InjectedRequest, inject, type PlainRequest } from './inject.ts'
import { createScrubber, type Scrubber } from './scrub.ts'

/** The parts that relay the requests of one connection to a host with secrets. */
export interface Relay {
  target: Target
  /** The secrets that are bound to the host now. */
  secrets(): readonly BoundSecret[]
  /** Reports each use of a secret. */
  used(use: SecretUse): void
  /** Why there is no server: each request is answered with this. */
  failure?: string
  /** Called whenever bytes have moved. */
  moved(): void
  /** Resolves when the bytes written to the program have been sent. */
  hasRoom(): Promise<void>
}

export interface PreparedRequest {
  request: InjectedRequest
  scrubber: Scrubber
  /** Reports the secrets that the request uses, once all are in it. */
  report(): void
}

/** The longest path in the report of a use. */
const MAX_PATH_CHARS = 500

/** The name of a host in requests: with its port unless that is the usual one. */
export const authorityOf = ({ name, port }: Target): string => (port === 443 ? name : `${name}:${port}`)

/** Throws an HttpError unless a request is for this host. */
export function assertAuthority(target: Target, authority: string): void {
  const [, name = '', port = '443'] = /^([^:@/?#[\]]+?)\.?(?::(\d{1,5}))?$/.exec(authority) ?? []
  if (name.toLowerCase() === target.name && Number(port) === target.port) return
  throw new HttpError(421, `this connection is for ${authorityOf(target)} alone`)
}

/**
 * Prepares a request: adds the secrets that may go with it, and makes the scrubber for its answer. The request's headers are
 * those that a proxy passes on, without the host. Throws an HttpError.
 */
export function prepare({ target, secrets, used }: Relay, asked: PlainRequest): PreparedRequest {
  const bound = secrets().map(secret => ({ ...secret, value: createReader(secret) }))
  // Secrets could not be found in a compressed answer.
  const isInParts = asked.headers.some(([name, value]) => name === 'range' && value.includes(','))
  const kept = asked.headers.filter(([name]) => !compressing.has(name) && !(isInParts && name === 'range'))
  const request = inject({ ...asked, headers: [...kept, ['accept-encoding', 'identity']] }, bound)
  return {
    request,
    // An answer cannot repeat a secret that is not there.
    scrubber: createScrubber(bound.flatMap(({ value }) => value.find() ?? [])),
    report() {
      const path = (asked.path.split('?', 1)[0] ?? '').slice(0, MAX_PATH_CHARS)
      for (const name of request.used) used({ name, host: target.name, port: target.port, method: asked.method, path })
    },
  }
}

const PARTIAL = 206
const compressing = new Set(['accept-encoding', 'grpc-accept-encoding', 'sec-websocket-extensions'])

/** Reads the secret once, so that what goes with a request is what is taken out of its answer. */
function createReader({ name, value: read }: BoundSecret) {
  let value: string | undefined
  try {
    value = read()
  } catch {
    // The request may not need it.
  }
  const get = (): string => {
    if (value !== undefined) return value
    throw new HttpError(502, `this request needs the secret ${name}, which was removed or cannot be read`)
  }
  return Object.assign(get, { find: () => value })
}

/**
 * Decompresses an answer that the server compressed unasked, and corrects its headers. Throws an HttpError when that is not
 * possible.
 */
export async function decoded(
  status: number,
  headers: readonly Header[],
  body: AsyncIterable<Buffer>,
): Promise<{ headers: readonly Header[]; body: AsyncIterable<Buffer> } | undefined> {
  const inParts = headers.some(([name, value]) => name === 'content-type' && /^multipart\//i.test(value))
  if (status === PARTIAL && inParts) throw new HttpError(502, 'it answers in parts, where that hides secrets')
  const encoding = headers
    .filter(([name]) => name === 'content-encoding')
    .map(([, value]) => value.trim().toLowerCase())
    .join(',')
  if (encoding === '' || encoding === 'identity') return undefined
  const { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } = await import('node:zlib')
  const decoders = new Map<string, () => Transform>([
    ['gzip', () => createGunzip()],
    ['x-gzip', () => createGunzip()],
    ['deflate', () => createInflate()],
    ['br', () => createBrotliDecompress()],
    ['zstd', () => createZstdDecompress()],
  ])
  const decoder = decoders.get(encoding)
  if (!decoder || status === PARTIAL) throw new HttpError(502, 'it compresses its answer, where that hides secrets')
  const dropped = ['content-encoding', 'content-length']
  const { Readable, pipeline } = await import('node:stream')
  const plain: Readable = pipeline(Readable.from(body, { objectMode: false }), decoder(), () => {})
  return { headers: headers.filter(([name]) => !dropped.includes(name)), body: plain }
}

/** Removes secrets from a body. The body of an answer with the status 206 is only a part. */
export async function* scrubbed(
  body: AsyncIterable<Buffer>,
  { scrubber, moved, status = 200 }: { scrubber: Scrubber; moved(): void; status?: number },
): AsyncGenerator<Buffer, void> {
  const stream = scrubber.stream(status === PARTIAL)
  for await (const piece of body) {
    moved()
    const clean = stream.push(piece)
    if (clean.byteLength > 0) yield clean
  }
  const last = stream.end()
  if (last.byteLength > 0) yield last
}
