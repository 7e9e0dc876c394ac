import { type Chunk, parseChunk } from './chunk.ts'

/** Which chunks a stream may have: those of the contract, those that version 6 of the AI SDK takes too, or all of version 7. */
export type StreamProfile = 'contract' | 'full' | 'ai-7'

/** Every other type is the same in every profile. */
const changing =
  /^\{"type":"(?:start"|finish"|abort"|tool-approval-|tool-output-denied"|file"|source-url"|steering-message"|data-)/

/** What a reader of this profile gets of a stored chunk; undefined: nothing. Both are JSON. */
export function projectJson(json: string, profile: StreamProfile): string | undefined {
  if (!changing.test(json)) return json
  const chunk = project(parseChunk(json), profile)
  return chunk === undefined ? undefined : JSON.stringify(chunk)
}

/** What a reader of this profile gets of a chunk; undefined: nothing. */
export function project(chunk: Chunk, profile: StreamProfile): Chunk | undefined {
  if (chunk.type === 'data-tool-begin') return undefined
  if (profile === 'ai-7') return chunk
  switch (chunk.type) {
    // Version 6 of the AI SDK does not know this chunk: the outcome of the call, which follows, says enough.
    case 'tool-approval-response':
      return undefined
    case 'steering-message':
      return { type: 'data-steering', data: { messageId: chunk.id }, transient: true }
    case 'finish':
      if (profile === 'contract') return { type: 'finish' }
      return chunk.finishReason === 'interrupted' ? { ...chunk, finishReason: 'error' } : chunk
  }
  return profile === 'contract' ? toContract(chunk) : chunk
}

/** Old clients end with an error at any type or field that they do not know. */
function toContract(chunk: Chunk): Chunk | undefined {
  switch (chunk.type) {
    case 'start':
    case 'abort':
      return { type: chunk.type }
    case 'tool-approval-request': {
      const { type: _, ...data } = chunk
      return { type: 'data-approval', data, transient: true }
    }
    case 'tool-output-denied':
      return { type: 'tool-output-error', toolCallId: chunk.toolCallId, errorText: 'denied', providerExecuted: true }
    case 'file':
    case 'source-url':
      return undefined
    default:
      return 'data' in chunk && chunk.transient !== true ? undefined : chunk
  }
}
