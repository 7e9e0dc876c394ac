import { APICallError, InvalidResponseDataError, NoOutputGeneratedError } from 'ai'
import { objectOf } from '../../../src/read/json.ts'

/** The stream ended, or lost its connection, before the event that ends an answer. */
export class CutStream extends Error {
  constructor(cause?: unknown) {
    super("The model's stream ended before its reply was complete.", { cause })
  }
}

/** Whether the provider sent no end. The SDK then gives no raw reason, or `interrupted` for Anthropic's API after some text. */
export const isUnfinished = (finishReason: string, rawReason: string | undefined): boolean =>
  finishReason === 'interrupted' || (finishReason === 'other' && rawReason === undefined)

/** Gives a CutStream for each of the errors that mean that the stream was cut, and any other error as it is. */
export function asCut(error: unknown): unknown {
  return isCut(error) ? new CutStream(error) : error
}

function isCut(error: unknown): boolean {
  if (NoOutputGeneratedError.isInstance(error)) return true
  if (InvalidResponseDataError.isInstance(error)) return /ended without a finish reason/.test(error.message)
  // The SDK reads the first event before it returns the stream.
  if (APICallError.isInstance(error)) return error.statusCode === 200 && error.cause !== error && isCut(error.cause)
  return connectionCodes.has(String(objectOf(error)?.code))
}

/** The code of fetch for a connection that ends within a body, and the gateway's for every stream that is cut. */
const connectionCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'STREAM_ENDED'])
