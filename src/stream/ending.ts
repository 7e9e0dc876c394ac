import type { Chunk, FinishReason } from './chunk.ts'

/** How a run ends. `waiting`: calls stay open, for a person or for the client. */
export type Ending =
  | { status: 'completed' | 'cancelled' }
  /** `lostText`: the server stopped meanwhile, so calls that ran have no result. */
  | { status: 'waiting'; lostText?: string }
  | { status: 'failed' | 'interrupted'; errorText: string }

/** The chunks behind the metadata, the last of a stream. */
export const lastChunks = (ending: Ending): Chunk[] => [
  ...lastWord(ending),
  { type: 'finish', finishReason: finishReasons[ending.status] },
]

const finishReasons: Readonly<Record<Ending['status'], FinishReason>> = {
  completed: 'stop',
  waiting: 'tool-calls',
  cancelled: 'other',
  failed: 'error',
  interrupted: 'interrupted',
}

function lastWord(ending: Ending): Chunk[] {
  if ('errorText' in ending) return [{ type: 'error', errorText: ending.errorText }]
  return ending.status === 'cancelled' ? [{ type: 'abort', reason: 'cancelled' }] : []
}

/** The error of a call that has no result at the end. */
export function lostResult(ending: Ending): string {
  if ('errorText' in ending) return ending.errorText
  if (ending.status === 'waiting' && ending.lostText !== undefined) return ending.lostText
  return ending.status === 'cancelled' ? 'cancelled' : 'no result'
}
