/** One entry of an archive: a file, a directory when its name ends with `/`, a symbolic link when it has a target. */
export interface TarEntry {
  name: string
  mode: number
  content?: Bun.BunFile
  target?: string
}

const BLOCK_BYTES = 512
/** Room for a name in the header of ustar. */
const MAX_NAME_BYTES = 100

/**
 * Writes an archive of root's files, as POSIX ustar. Files are read while it is sent: a guest has more than 100 MB. Own code:
 * tar-stream would add twelve packages for this one writer.
 */
export function writeTar(entries: readonly TarEntry[]): ReadableStream<Uint8Array> {
  const pieces = writePieces(entries)
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await pieces.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}

async function* writePieces(entries: readonly TarEntry[]): AsyncGenerator<Uint8Array, void> {
  for (const entry of entries) {
    const { content } = entry
    const size = content?.size ?? 0
    yield writeHeader(entry, size)
    let sent = 0
    for await (const bytes of content?.stream() ?? []) {
      sent += bytes.byteLength
      yield bytes
    }
    if (sent !== size) throw new Error(`${entry.name} has changed while it was read`)
    yield new Uint8Array((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES)
  }
  yield new Uint8Array(2 * BLOCK_BYTES)
}

function writeHeader({ name, mode, target = '' }: TarEntry, size: number): Uint8Array {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw new Error(`the name is too long for an archive: ${name}`)
  const header = Buffer.alloc(BLOCK_BYTES)
  const number = (value: number, offset: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset, 'latin1')
  header.write(name, 0)
  number(mode, 100, 8)
  number(0, 108, 8)
  number(0, 116, 8)
  number(size, 124, 12)
  number(0, 136, 12)
  header.write(target ? '2' : name.endsWith('/') ? '5' : '0', 156, 'latin1')
  header.write(target, 157)
  header.write('ustar\x0000', 257, 'latin1')
  // The checksum is that of a header whose checksum is spaces.
  header.fill(' ', 148, 156)
  const sum = header.reduce((all, byte) => all + byte, 0)
  number(sum, 148, 7)
  return header
}
