import type { Writable } from 'node:stream'
import { type ByteSource, write } from './byte-source.ts'
import { formatFields, getValues, type Header, parseFields, type RequestHead } from './head.ts'
import { HttpError } from './http-error.ts'

/** How long a message's body is. */
export type Framing = { kind: 'length'; bytes: number } | { kind: 'chunked' } | { kind: 'until-close' }

export const noBody: Framing = { kind: 'length', bytes: 0 }

/** The longest line before a chunk, and the most bytes of trailers. */
const MAX_LINE_BYTES = 8 * 1024

/** Reads the framing from headers; undefined when they name none. Throws an HttpError when they could be read in two ways. */
export function parseFraming(
  headers: readonly Header[],
  version: '1.0' | '1.1',
  status: 400 | 502,
): Framing | undefined {
  const encodings = getValues(headers, 'transfer-encoding')
  const lengths = getValues(headers, 'content-length')
  if (encodings.length > 0) {
    const [encoding = ''] = encodings
    const isPlain = encodings.length === 1 && encoding.toLowerCase() === 'chunked' && version === '1.1'
    if (!isPlain || lengths.length > 0) throw new HttpError(status, 'transfer-encoding is not plainly chunked')
    return { kind: 'chunked' }
  }
  if (lengths.length === 0) return undefined
  const [length = ''] = lengths
  if (lengths.length > 1 || !/^\d{1,15}$/.test(length)) throw new HttpError(status, 'content-length is not one number')
  return { kind: 'length', bytes: Number(length) }
}

/** A request's framing. A request whose headers name none has no body. */
export const requestFraming = ({ headers, version }: RequestHead): Framing =>
  parseFraming(headers, version, 400) ?? noBody

/**
 * A body's bytes without its framing. Throws when it is cut short or badly chunked. The fields that follow a chunked body are given
 * to `onTrailers`, and dropped without it.
 */
export async function* readBody(
  source: ByteSource,
  framing: Framing,
  onTrailers?: (fields: Header[]) => void,
): AsyncGenerator<Buffer, void> {
  if (framing.kind === 'length') return yield* readBytes(source, framing.bytes)
  if (framing.kind === 'until-close') {
    for (let piece = await source.read(); piece; piece = await source.read()) yield piece
    return
  }
  for (;;) {
    const size = chunkSize(await line(source))
    if (size === 0) break
    yield* readBytes(source, size)
    if ((await line(source)) !== '') throw new HttpError(400, 'a chunk is longer than it says')
  }
  let bytes = 0
  const lines: string[] = []
  for (let text = await line(source); text !== ''; text = await line(source)) {
    bytes += text.length
    if (bytes > MAX_LINE_BYTES) throw new HttpError(431, 'the trailers are too long')
    if (onTrailers) lines.push(text)
  }
  onTrailers?.(parseFields(lines, 400))
}

/** Copying more than this to send it in one piece costs more than sending it in three. */
const MAX_JOINED_BYTES = 16 * 1024

/** Writes one chunk of a chunked body, as `write` does. It must not be empty: an empty chunk ends the body. */
export async function writeChunk(sink: Writable, bytes: Buffer): Promise<void> {
  const [head, end] = [`${bytes.byteLength.toString(16)}\r\n`, '\r\n']
  if (bytes.byteLength <= MAX_JOINED_BYTES) {
    await write(sink, Buffer.concat([Buffer.from(head), bytes, Buffer.from(end)]))
    return
  }
  for (const piece of [head, bytes, end]) await write(sink, piece)
}

export const LAST_CHUNK = '0\r\n\r\n'

/** Returns the end of a chunked body, with the fields that follow it. */
export const lastChunk = (trailers: readonly Header[]): Buffer =>
  Buffer.from(`0\r\n${formatFields(trailers)}\r\n`, 'latin1')

async function* readBytes(source: ByteSource, count: number): AsyncGenerator<Buffer, void> {
  for (let left = count; left > 0; ) {
    const piece = await source.read()
    if (!piece) throw new HttpError(400, 'the body is cut short')
    source.unread(piece.subarray(left))
    const wanted = piece.subarray(0, left)
    left -= wanted.byteLength
    yield wanted
  }
}

async function line(source: ByteSource): Promise<string> {
  const bytes = await source.readThrough('\r\n', MAX_LINE_BYTES)
  if (!bytes) throw new HttpError(400, 'the body is cut short')
  return bytes.toString('latin1').slice(0, -2)
}

function chunkSize(text: string): number {
  const [, digits] = /^([0-9a-fA-F]{1,12})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/.exec(text) ?? []
  if (!digits) throw new HttpError(400, 'a chunk has no size')
  return Number.parseInt(digits, 16)
}
