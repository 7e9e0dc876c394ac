import { type Call, lanes } from '../wire/call.ts'
import { describeError } from '../wire/describe-error.ts'
import type { WriteControl } from '../wire/requests.ts'
import { failureOf, resultOf } from '../wire/results.ts'
import type { TakenFile } from './taken-file.ts'

const READ_BYTES = 256 * 1024
const WRITE_BYTES = 512 * 1024

/**
 * Reads a file's bytes up to its end, one piece ahead. The file and its call are closed at the end, when the reader stops, and when the
 * call ends.
 */
export function readTaken(file: TakenFile, call: Call): ReadableStream<Uint8Array> {
  let position = 0
  let coming: Promise<Uint8Array> | undefined
  const next = async () => {
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
    const count = await file.read(buffer, position)
    position += count
    return buffer.subarray(0, count)
  }
  const end = () => {
    call.close()
    void file.close()
  }
  call.result.then(end, end)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = call.isOver ? undefined : await (coming ?? next()).catch(error => afterCall(call, error))
        if (piece === undefined || piece.byteLength === 0) {
          end()
          resultOf(await call.result)
          return controller.close()
        }
        coming = next()
        coming.catch(() => {})
        controller.enqueue(piece)
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}

/** The call ended and closed the file under the reader: the call's reason counts. Otherwise the error counts. */
function afterCall(call: Call, error: unknown): undefined {
  if (!call.isOver) {
    call.close()
    throw refused(error)
  }
}

const refused = (error: unknown) => failureOf({ error: describeError(error) })

/**
 * Fills an empty file and closes it. When the guest would have refused the bytes, this throws the guest's error after the guest has
 * removed the file.
 */
export async function writeTaken(
  file: TakenFile,
  call: Call,
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<void> {
  let size = 0
  let held: Uint8Array[] = []
  let heldBytes = 0
  const flush = async () => {
    try {
      if (size + heldBytes > maxBytes) throw Object.assign(new Error('longer than it may be'), { code: 'EFBIG' })
      await file.write(held, size)
    } catch (error) {
      await file.close()
      call.control({ isIncomplete: true } satisfies WriteControl)
      call.end(lanes.up)
      await call.result
      throw refused(error)
    }
    size += heldBytes
    held = []
    heldBytes = 0
  }
  try {
    for await (const chunk of chunks) {
      held.push(chunk)
      heldBytes += chunk.byteLength
      if (heldBytes >= WRITE_BYTES) await flush()
    }
    await flush()
  } finally {
    await file.close()
  }
}
