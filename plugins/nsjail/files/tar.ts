/** One member of a tar archive. Its body can be read until the next member is requested. */
export interface TarEntry {
  /** As the archive has it, unchecked: it may lead anywhere. */
  name: string
  /** `special`: a device or a FIFO. */
  type: 'file' | 'directory' | 'symlink' | 'hardlink' | 'special'
  linkName: string
  mode: number
  uid: number
  gid: number
  /** Seconds since 1970. */
  modified: number
  /** A file's bytes. Unread ones are skipped. */
  body: AsyncGenerator<Buffer, void>
}

const BLOCK = 512
/** Limit for a member that describes the next one. */
const MAX_DESCRIPTION_BYTES = 1024 * 1024

const types: Readonly<Record<string, TarEntry['type']>> = {
  '\0': 'file',
  '0': 'file',
  '1': 'hardlink',
  '2': 'symlink',
  '3': 'special',
  '4': 'special',
  '5': 'directory',
  '6': 'special',
  '7': 'file',
}

/**
 * Reads ustar, pax and GNU archives, without sparse files. Throws an error that names the invalid member. Own code: tar-stream 3
 * takes an archive that is cut between two members for a whole one, and reads on behind the end marker.
 */
export async function* readTar(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void> {
  const input = createInput(chunks)
  let described: Record<string, string> = {}
  for (;;) {
    const header = await input.exactly(BLOCK)
    if (header.every(byte => byte === 0)) break
    if (readNumber(header, 148, 8) !== computeChecksum(header)) throw new Error('it is not a tar archive')
    const kind = header.toString('latin1', 156, 157)
    const size = described.size === undefined ? readNumber(header, 124, 12) : Number(described.size)
    if (!Number.isSafeInteger(size) || size < 0) throw new Error('it has a member without a valid size')
    if ('xgLKV'.includes(kind)) {
      if (size > MAX_DESCRIPTION_BYTES) throw new Error('it has a description that is too long')
      const text = await input.exactly(size)
      await input.skip(padding(size))
      if (kind === 'x') described = { ...described, ...parsePax(text) }
      if (kind === 'L') described = { ...described, path: readText(text, 0, size) }
      if (kind === 'K') described = { ...described, linkpath: readText(text, 0, size) }
      continue
    }
    const name = described.path ?? readName(header)
    const type = types[kind]
    if (!type || Object.keys(described).some(key => key.startsWith('GNU.sparse'))) {
      throw new Error(`${JSON.stringify(name)} is of a kind that is not supported: ${JSON.stringify(kind)}`)
    }
    const bytes = type === 'file' ? size : 0
    let left = bytes
    yield {
      name,
      type: type === 'file' && name.endsWith('/') ? 'directory' : type,
      linkName: described.linkpath ?? readText(header, 157, 100),
      mode: readNumber(header, 100, 8) & 0o7777,
      uid: Number(described.uid ?? readNumber(header, 108, 8)),
      gid: Number(described.gid ?? readNumber(header, 116, 8)),
      modified: Number(described.mtime ?? readNumber(header, 136, 12)),
      body: (async function* () {
        while (left > 0) {
          const piece = await input.some(left)
          left -= piece.byteLength
          yield piece
        }
      })(),
    }
    await input.skip(left + padding(bytes))
    described = {}
  }
  // Drain the padding so the writer does not get EPIPE.
  await input.drain()
}

const padding = (size: number) => (BLOCK - (size % BLOCK)) % BLOCK

const isUstar = (header: Buffer) => header.toString('latin1', 257, 263) === 'ustar\0'

function readName(header: Buffer): string {
  const prefix = isUstar(header) ? readText(header, 345, 155) : ''
  const name = readText(header, 0, 100)
  return prefix ? `${prefix}/${name}` : name
}

function readText(bytes: Buffer, from: number, length: number): string {
  const field = bytes.subarray(from, from + length)
  const end = field.indexOf(0)
  return field.toString('utf8', 0, end < 0 ? length : end)
}

/** Reads octal digits, or GNU's binary form of larger numbers. */
function readNumber(header: Buffer, from: number, length: number): number {
  const isBinary = ((header[from] ?? 0) & 0x80) !== 0
  if (isBinary) return Number(BigInt.asUintN(63, header.readBigUInt64BE(from + length - 8)))
  return Number.parseInt(readText(header, from, length).trim() || '0', 8)
}

/** Sums up all bytes, with spaces for the checksum's own field. */
function computeChecksum(header: Buffer): number {
  let sum = 8 * 0x20
  for (const [index, byte] of header.entries()) if (index < 148 || index >= 156) sum += byte
  return sum
}

/** Parses lines of `LENGTH KEY=VALUE`, where the length is the line's own. */
function parsePax(bytes: Buffer): Record<string, string> {
  const described: Record<string, string> = {}
  for (let at = 0; at < bytes.byteLength; ) {
    const [, digits = ''] = /^(\d{1,7}) /.exec(bytes.toString('latin1', at, at + 9)) ?? []
    const line = bytes.toString('utf8', at + digits.length + 1, at + Number(digits) - 1)
    const equals = line.indexOf('=')
    if (!digits || equals < 1 || at + Number(digits) > bytes.byteLength) throw new Error('it has a bad description')
    described[line.slice(0, equals)] = line.slice(equals + 1)
    at += Number(digits)
  }
  return described
}

function createInput(chunks: AsyncIterable<Uint8Array>) {
  const iterator = chunks[Symbol.asyncIterator]()
  let held: Buffer = Buffer.alloc(0)

  /** Reads at least one byte and at most `most`. */
  const some = async (most: number): Promise<Buffer> => {
    while (held.byteLength === 0) {
      const { value, done } = await iterator.next()
      if (done) throw new Error('it is cut short')
      held = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    }
    const piece = held.subarray(0, most)
    held = held.subarray(piece.byteLength)
    return piece
  }

  return {
    some,
    async exactly(count: number): Promise<Buffer> {
      const pieces: Buffer[] = []
      for (let left = count; left > 0; ) {
        const piece = await some(left)
        left -= piece.byteLength
        pieces.push(piece)
      }
      return Buffer.concat(pieces)
    },
    async skip(count: number): Promise<void> {
      for (let left = count; left > 0; ) left -= (await some(left)).byteLength
    },
    async drain(): Promise<void> {
      while (!(await iterator.next()).done) {}
    },
  }
}
