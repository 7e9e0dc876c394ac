import { APICallError, InvalidResponseDataError, NoOutputGeneratedError } from 'ai'
import { objectOf } from '../../../src/read/json.ts'

/** A stream that came to its end, or lost its connection, before the event that ends an answer. */
export class CutStream extends Error {
  constructor(cause?: unknown) {
    super("The model's stream ended before its reply was complete.", { cause })
  }
}

/** The SDK names no reason when the provider has sent no end: that of Anthropic's wire is `interrupted` after a word. */
export const isUnfinished = (finishReason: string, rawReason: string | undefined): boolean =>
  finishReason === 'interrupted' || (finishReason === 'other' && rawReason === undefined)

/** The error of a call: a CutStream where it says, in one of many ways, that the stream was cut. */
export function asCut(error: unknown): unknown {
  return isCut(error) ? new CutStream(error) : error
}

function isCut(error: unknown): boolean {
  if (NoOutputGeneratedError.isInstance(error)) return true
  if (InvalidResponseDataError.isInstance(error)) return /ended without a finish reason/.test(error.message)
  // The SDK reads the first event before it gives the stream.
  if (APICallError.isInstance(error)) return error.statusCode === 200 && error.cause !== error && isCut(error.cause)
  return connectionCodes.has(String(objectOf(error)?.code))
}

/** What fetch gives when a connection ends within a body, and the gateway for every stream that is cut. */
const connectionCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'STREAM_ENDED'])
