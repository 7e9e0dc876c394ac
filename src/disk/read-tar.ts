/** One member of a tar archive. Its body can be read until the next member is requested. */
export interface TarEntry {
  /** The path as the archive has it. It is not checked, so that it may lead anywhere. */
  name: string
  /** `special` stands for a device or a FIFO. */
  type: 'file' | 'directory' | 'symlink' | 'hardlink' | 'special'
  linkName: string
  mode: number
  uid: number
  gid: number
  /** Seconds since 1970. */
  modified: number
  /**
   * The whole size of a file with holes, and the parts that `body` has, one after the other. Only readers that ask for `sparse` get this.
   */
  sparse?: SparseMap
  /** A file's bytes. Unread ones are skipped. */
  body: AsyncGenerator<Buffer, void>
}

export interface SparseMap {
  size: number
  parts: readonly { at: number; length: number }[]
  /** The map as the archive has it. */
  bytes: Buffer
}

const BLOCK = 512
/** The size limit for a member that describes the next one. */
const MAX_DESCRIPTION_BYTES = 1024 * 1024
/** A disk image of 1 TiB with a hole in each second block has a larger map. */
const MAX_MAP_BYTES = 64 * 1024 * 1024

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
 * Reads ustar, pax and GNU archives; sparse files of GNU's format 1.0 only when `sparse` asks for them. Throws an error that names the
 * invalid member. Own code: tar-stream 3 takes an archive that is cut between two members for a whole one, and reads on behind the
 * end marker.
 */
export async function* readTar(
  chunks: AsyncIterable<Uint8Array>,
  { sparse = false }: { sparse?: boolean } = {},
): AsyncGenerator<TarEntry, void> {
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
    const name = described['GNU.sparse.name'] ?? described.path ?? readName(header)
    const type = types[kind]
    const isSparse = Object.keys(described).some(key => key.startsWith('GNU.sparse'))
    const isKnown = described['GNU.sparse.major'] === '1' && described['GNU.sparse.minor'] === '0' && type === 'file'
    if (!type || (isSparse && !(sparse && isKnown))) {
      throw new Error(`${JSON.stringify(name)} is of a kind that is not supported: ${JSON.stringify(kind)}`)
    }
    const bytes = type === 'file' ? size : 0
    const map = isSparse ? await readMap(input.exactly, Number(described['GNU.sparse.realsize']), bytes) : undefined
    let left = bytes - (map?.bytes.byteLength ?? 0)
    yield {
      name,
      type: type === 'file' && name.endsWith('/') ? 'directory' : type,
      linkName: described.linkpath ?? readText(header, 157, 100),
      mode: readNumber(header, 100, 8) & 0o7777,
      uid: Number(described.uid ?? readNumber(header, 108, 8)),
      gid: Number(described.gid ?? readNumber(header, 116, 8)),
      modified: Number(described.mtime ?? readNumber(header, 136, 12)),
      ...(map && { sparse: map }),
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

/** Reads lines of numbers in whole blocks: the count of parts, then the offset and length of each. */
async function readMap(exactly: (count: number) => Promise<Buffer>, size: number, bytes: number): Promise<SparseMap> {
  const bad = () => new Error('it has a sparse file without a valid map')
  if (!Number.isSafeInteger(size) || size < 0) throw bad()
  const blocks: Buffer[] = []
  const numbers: number[] = []
  let digits = ''
  while (numbers.length === 0 || numbers.length < 1 + 2 * (numbers[0] ?? 0)) {
    const length = blocks.length * BLOCK
    if (length + BLOCK > Math.min(bytes, MAX_MAP_BYTES)) throw bad()
    const block = await exactly(BLOCK)
    blocks.push(block)
    const lines = (digits + readText(block, 0, BLOCK)).split('\n')
    digits = lines.pop() ?? ''
    for (const line of lines) {
      if (!/^\d{1,16}$/.test(line)) throw bad()
      numbers.push(Number(line))
    }
  }
  const [count = 0, ...pairs] = numbers
  const parts = Array.from({ length: count }, (_, index) => ({
    at: pairs[index * 2] ?? 0,
    length: pairs[index * 2 + 1] ?? 0,
  }))
  let end = 0
  for (const { at, length } of parts) {
    if (at < end || at + length > size) throw bad()
    end = at + length
  }
  const map = Buffer.concat(blocks)
  if (parts.reduce((sum, { length }) => sum + length, 0) !== bytes - map.byteLength) throw bad()
  return { size, parts, bytes: map }
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

/** Parses lines of `LENGTH KEY=VALUE`, where LENGTH counts the whole line. */
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
