import { ApiError } from '../../errors.ts'
import { type Call, lanes } from '../wire/call.ts'
import { resultOf } from '../wire/results.ts'

/** All that an answer has in its lane. Throws what the call was refused with, and when it is longer than any should be. */
export async function collect(call: Call, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let byteLength = 0
  for (let chunk = await call.read(lanes.down); chunk; chunk = await call.read(lanes.down)) {
    byteLength += chunk.byteLength
    if (byteLength > maxBytes) {
      call.close()
      throw new ApiError('invalid_request', 'The sandbox answers with more than it may.')
    }
    chunks.push(chunk)
  }
  resultOf(await call.result)
  const [first] = chunks
  return chunks.length === 1 && first ? first : Buffer.concat(chunks)
}

/** Ends the call when nobody wants its result any more. */
export function closeOnAbort(call: Call, signal: AbortSignal | undefined): void {
  if (!signal) return
  const close = () => call.close()
  signal.addEventListener('abort', close)
  const done = () => signal.removeEventListener('abort', close)
  call.result.then(done, done)
}
