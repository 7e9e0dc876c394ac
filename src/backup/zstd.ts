import { pipeline, Readable } from 'node:stream'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { codeOf } from '../read/error-code.ts'

/** Compresses on another thread. The data has checksums, so that a changed bit is noticed. */
export const compress = (bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> =>
  // Errors reach the consumer of the stream.
  pipeline(Readable.from(bytes), createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } }), () => {})

export async function* decompress(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    yield* pipeline(Readable.from(bytes), createZstdDecompress(), () => {})
  } catch (error) {
    const code = codeOf(error) ?? ''
    if (code === 'ZSTD_error_prefix_unknown') throw new Error('it is no backup of threadbox')
    throw code.startsWith('ZSTD_') ? new Error('it was altered or damaged') : error
  }
}
