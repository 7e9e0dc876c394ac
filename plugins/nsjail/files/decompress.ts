import { tailOf } from '../host/stderr.ts'

const magics = [
  { bytes: [0x1f, 0x8b], open: (packed: AsyncIterable<Uint8Array>) => through(packed, 'createGunzip') },
  {
    bytes: [0x28, 0xb5, 0x2f, 0xfd],
    open: (packed: AsyncIterable<Uint8Array>) => through(packed, 'createZstdDecompress'),
  },
  { bytes: [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], open: unxz },
]
const MAGIC_BYTES = 6

/** Unpacks bytes that begin like gzip, xz or zstd; passes others on. */
export async function* decompress(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const iterator = packed[Symbol.asyncIterator]()
  let first: Buffer = Buffer.alloc(0)
  while (first.byteLength < MAGIC_BYTES) {
    const { value, done } = await iterator.next()
    if (done) break
    first = Buffer.concat([first, value])
  }
  const whole = (async function* () {
    yield first
    yield* { [Symbol.asyncIterator]: () => iterator }
  })()
  const magic = magics.find(({ bytes }) => bytes.every((byte, index) => first[index] === byte))
  yield* magic ? await magic.open(whole) : whole
}

async function through(
  packed: AsyncIterable<Uint8Array>,
  unpacker: 'createGunzip' | 'createZstdDecompress',
): Promise<AsyncIterable<Uint8Array>> {
  // The module is loaded at its first use, so that servers start faster.
  const [{ pipeline, Readable }, zlib] = await Promise.all([import('node:stream'), import('node:zlib')])
  // Errors surface to the consumer of the stream.
  return pipeline(Readable.from(packed), zlib[unpacker](), () => {})
}

/** Runs the program xz, because Bun has no such decoder. */
async function* unxz(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  if (!Bun.which('xz')) throw new Error('it is packed by xz, and the program xz is not installed: install xz-utils')
  const child = Bun.spawn(['xz', '-dc'], { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe', lazy: true })
  const writeInput = async () => {
    for await (const piece of packed) {
      child.stdin.write(piece)
      await child.stdin.flush()
    }
    await child.stdin.end()
  }
  // xz may end before it has read everything: its own message is then the error to report.
  const written = writeInput().catch(() => child.kill())
  yield* child.stdout
  const problems = await new Response(child.stderr).text()
  await written
  if ((await child.exited) !== 0) throw new Error(tailOf(problems) || 'it could not be read to its end')
}
