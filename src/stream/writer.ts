import type { EngineEvent } from '../plugin-api/index.ts'
import type { Chunk, PartKind, RunMetadata } from './chunk.ts'

/** How a run ends. */
export type Ending = { status: 'completed' | 'cancelled' } | { status: 'failed' | 'interrupted'; errorText: string }

/** Turns an engine's events into a stream that every client accepts, whatever the engine does. */
export interface Writer {
  /** The chunks that begin a stream. */
  start(): Chunk[]
  /** The chunks of one event; an empty list for an event that makes no sense here. */
  write(event: EngineEvent): Chunk[]
  /** The chunks that end the stream, open parts closed. */
  close(ending: Ending, metadata: RunMetadata): Chunk[]
  /** Continues after a stored chunk, as if this writer had made it. */
  replay(chunk: Chunk): void
}

interface Tool {
  name: string
  step: 'begun' | 'called' | 'done'
}

const providerExecuted = true as const

/** Over 100 lines: one state of the open parts, with a case for each event. */
export function createWriter(): Writer {
  const open = new Map<string, PartKind>()
  const openByEngineId = new Map<string, string>()
  const tools = new Map<string, Tool>()
  let parts = 0
  /** How many calls the current step has, and how many of them succeeded. */
  let calls = { all: 0, good: 0 }

  function replay(chunk: Chunk): void {
    switch (chunk.type) {
      case 'start-step':
        calls = { all: 0, good: 0 }
        return
      case 'text-start':
      case 'reasoning-start':
        parts += 1
        open.set(chunk.id, chunk.type === 'text-start' ? 'text' : 'reasoning')
        return
      case 'text-end':
      case 'reasoning-end':
        open.delete(chunk.id)
        return
      case 'tool-input-start':
        calls.all += 1
        tools.set(chunk.toolCallId, { name: chunk.toolName, step: 'begun' })
        return
      case 'tool-input-available':
        tools.set(chunk.toolCallId, { name: chunk.toolName, step: 'called' })
        return
      case 'tool-output-available':
      case 'tool-output-error':
        if (chunk.type === 'tool-output-available') calls.good += 1
        tools.set(chunk.toolCallId, { name: tools.get(chunk.toolCallId)?.name ?? '', step: 'done' })
    }
  }

  const written = (...chunks: Chunk[]): Chunk[] => {
    chunks.forEach(replay)
    return chunks
  }

  /** Closes the open parts; with `kept`, only parts of another kind. */
  function endParts(kept?: PartKind): Chunk[] {
    const ended = [...open].filter(([, kind]) => kind !== kept)
    if (ended.length > 0) openByEngineId.clear()
    return ended.map(([id, kind]) => ({ type: `${kind}-end` as const, id }))
  }

  /**
   * Clients of version 5 ignore the mark of calls that the server runs: when each call of the last step has an output, they
   * post the whole conversation again, endlessly. So such calls are followed by a new step, even an empty one.
   */
  const nextStep = (): Chunk[] => (calls.all > 0 && calls.good === calls.all ? [{ type: 'start-step' }] : [])

  function writeDelta(kind: PartKind, engineId: string, delta: string): Chunk[] {
    if (!delta) return []
    const chunks = endParts(kind)
    let id = openByEngineId.get(engineId)
    if (id === undefined) {
      // Engines reuse an id for a later part; a client must never see that.
      id = `${kind}-${parts + 1}`
      openByEngineId.set(engineId, id)
      chunks.push(...nextStep(), { type: `${kind}-start`, id })
    }
    return [...chunks, { type: `${kind}-delta`, id, delta }]
  }

  const beginTool = (toolCallId: string, toolName: string): Chunk[] =>
    tools.has(toolCallId) ? [] : [...endParts(), { type: 'tool-input-start', toolCallId, toolName, providerExecuted }]

  function chunksOf(event: EngineEvent): Chunk[] {
    switch (event.type) {
      case 'text':
      case 'reasoning':
        return writeDelta(event.type, event.id, event.delta)
      case 'part-end': {
        const id = openByEngineId.get(event.id)
        const kind = id === undefined ? undefined : open.get(id)
        if (id === undefined || kind === undefined) return []
        openByEngineId.delete(event.id)
        return [{ type: `${kind}-end`, id }]
      }
      case 'tool-input': {
        const { callId, name, delta } = event
        if ((tools.get(callId)?.step ?? 'begun') !== 'begun') return []
        const begun = beginTool(callId, name)
        return delta === ''
          ? begun
          : [...begun, { type: 'tool-input-delta', toolCallId: callId, inputTextDelta: delta }]
      }
      case 'tool-call': {
        const tool = tools.get(event.callId)
        if ((tool?.step ?? 'begun') !== 'begun') return []
        const toolName = tool?.name ?? event.name
        const input = storable(event.input)
        return [
          ...beginTool(event.callId, toolName),
          { type: 'tool-input-available', toolCallId: event.callId, toolName, input, providerExecuted },
        ]
      }
      case 'tool-result': {
        const { callId: toolCallId, output, error } = event
        if ((tools.get(toolCallId)?.step ?? 'done') === 'done') return []
        if (error !== undefined) return [{ type: 'tool-output-error', toolCallId, errorText: error, providerExecuted }]
        return [{ type: 'tool-output-available', toolCallId, output: storable(output), providerExecuted }]
      }
      case 'tool-progress': {
        const { callId: toolCallId, data } = event
        if (tools.get(toolCallId)?.step !== 'called') return []
        return [{ type: 'data-tool-progress', data: storable({ ...data, toolCallId }), transient: true }]
      }
      case 'notice': {
        const { level, code, text } = event
        return [{ type: 'data-notice', data: { level, code, text }, transient: true }]
      }
      default:
        return []
    }
  }

  return {
    start: () => [{ type: 'start' }],
    write: event => written(...chunksOf(event)),
    close: (ending, messageMetadata) =>
      written(
        ...endParts(),
        ...[...tools]
          .filter(([, tool]) => tool.step !== 'done')
          .map(([toolCallId]) => ({
            type: 'tool-output-error' as const,
            toolCallId,
            errorText: lostResult(ending),
            providerExecuted,
          })),
        ...nextStep(),
        { type: 'message-metadata', messageMetadata },
        ...lastWord(ending),
        { type: 'finish' },
      ),
    replay,
  }
}

function lostResult(ending: Ending): string {
  if ('errorText' in ending) return ending.errorText
  return ending.status === 'cancelled' ? 'cancelled' : 'no result'
}

function lastWord(ending: Ending): Chunk[] {
  if ('errorText' in ending) return [{ type: 'error', errorText: ending.errorText }]
  return ending.status === 'cancelled' ? [{ type: 'abort' }] : []
}

/** A value that JSON cannot express, or omits, would break the stream. */
function storable(value: unknown): unknown {
  try {
    return JSON.stringify(value) === undefined ? null : value
  } catch {
    return String(value)
  }
}
