import { type FileHandle, open } from 'node:fs/promises'
import { listExtents } from '../disk/extents.ts'

const BLOCK = 512
const PIECE_BYTES = 1024 * 1024
/** The largest number that the header's twelve octal digits can hold. */
const MAX_OCTAL = 8 ** 11 - 1

/** A file for an archive. */
export interface Member {
  name: string
  /** A path, or the content itself. */
  from: string | Uint8Array
}

/** A member that was written. `bytes` and `sha256` describe it as stored: for a file with holes, its map and its data. */
export interface WrittenMember {
  name: string
  bytes: number
  sha256: string
}

/** Writes files as members of a tar archive; one with holes in GNU's sparse format 1.0. */
export async function* writeTar(
  members: AsyncIterable<Member>,
  onWritten: (written: WrittenMember) => void,
): AsyncGenerator<Uint8Array, void> {
  for await (const { name, from } of members) {
    if (typeof from !== 'string') {
      onWritten({ name, bytes: from.byteLength, sha256: Bun.SHA256.hash(from, 'hex') })
      yield* [header(name, from.byteLength, '0'), from, padding(from.byteLength)]
      continue
    }
    const file = await open(from)
    try {
      yield* writeFile(name, file, onWritten)
    } finally {
      await file.close()
    }
  }
  yield new Uint8Array(2 * BLOCK)
}

async function* writeFile(
  name: string,
  file: FileHandle,
  onWritten: (written: WrittenMember) => void,
): AsyncGenerator<Uint8Array, void> {
  const { size } = await file.stat()
  const extents = listExtents(file.fd, size)
  const data = extents.reduce((sum, { length }) => sum + length, 0)
  const isSparse = data < size
  const map = isSparse ? writeMap(extents) : Buffer.alloc(0)
  const bytes = map.byteLength + data
  if (isSparse) {
    const pax = { major: 1, minor: 0, name, realsize: size }
    const records = Object.entries(pax).map(([key, value]) => paxRecord(`GNU.sparse.${key}`, `${value}`))
    yield* paxMember(name, [...records, ...(bytes > MAX_OCTAL ? [paxRecord('size', `${bytes}`)] : [])])
  } else if (bytes > MAX_OCTAL) yield* paxMember(name, [paxRecord('size', `${bytes}`)])
  const hash = new Bun.CryptoHasher('sha256').update(map)
  yield* [header(name, Math.min(bytes, MAX_OCTAL), '0'), map]
  for (const { at, length } of extents) {
    for (let done = 0; done < length; ) {
      // Each piece has its own memory, because the one before may still be in use.
      const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, length - done))
      const { bytesRead } = await file.read(piece, 0, piece.byteLength, at + done)
      if (bytesRead === 0) throw new Error(`${name} has changed while it was read`)
      done += bytesRead
      const read = piece.subarray(0, bytesRead)
      hash.update(read)
      yield read
    }
  }
  yield padding(bytes)
  onWritten({ name, bytes, sha256: hash.digest('hex') })
}

function writeMap(extents: readonly { at: number; length: number }[]): Buffer {
  const text = Buffer.from(
    [extents.length, ...extents.flatMap(({ at, length }) => [at, length])].join('\n').concat('\n'),
  )
  return Buffer.concat([text, padding(text.byteLength)])
}

/** Makes a record `LENGTH KEY=VALUE`, where the length counts its own digits too. */
function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`
  const length = (digits: number): number => {
    const all = digits + rest.length
    return `${all}`.length === digits ? all : length(digits + 1)
  }
  return `${length(1)}${rest}`
}

function* paxMember(name: string, records: readonly string[]): Generator<Uint8Array, void> {
  const text = Buffer.from(records.join(''))
  yield* [header(`PaxHeaders/${name}`, text.byteLength, 'x'), text, padding(text.byteLength)]
}

const padding = (bytes: number) => new Uint8Array((BLOCK - (bytes % BLOCK)) % BLOCK)

function header(name: string, size: number, kind: string): Uint8Array {
  const block = Buffer.alloc(BLOCK)
  // A backup's own member names are short; a pax header's name is only for people.
  if (Buffer.byteLength(name) > 100 && kind === '0') throw new Error(`the name is too long for an archive: ${name}`)
  const number = (value: number, offset: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset, 'latin1')
  block.write(name, 0, 100)
  number(0o600, 100, 8)
  number(0, 108, 8)
  number(0, 116, 8)
  number(size, 124, 12)
  number(Math.floor(Date.now() / 1000), 136, 12)
  block.write(kind, 156, 'latin1')
  block.write('ustar\x0000', 257, 'latin1')
  // The checksum is computed over a header whose checksum field is spaces.
  block.fill(' ', 148, 156)
  const sum = block.reduce((all, byte) => all + byte, 0)
  number(sum, 148, 7)
  return block
}
