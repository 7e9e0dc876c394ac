import type { MessagePart } from '../plugin-api/index.ts'
import { createCalls } from './calls.ts'
import type { Chunk, PartKind, RunMetadata } from './chunk.ts'
import { type Ending, lastChunks } from './ending.ts'
import type { RunEvent } from './run-event.ts'
import { storable } from './storable.ts'

export interface WriterInit {
  /** The reply's id, for clients that read it. */
  messageId?: string
  /** The stored parts of a reply that goes on. */
  before?: readonly MessagePart[]
  /** The names of the tools that the client executes. */
  clientTools?: readonly string[]
}

/** Turns an engine's events into a stream that every client accepts, whatever the engine does. */
export interface Writer {
  /** The chunks that begin a stream. */
  start(): Chunk[]
  /** The chunks of one event; an empty list for an event that makes no sense here. */
  write(event: RunEvent): Chunk[]
  /** The calls that wait: for a person's decision, or for the client. Those of an interrupted run too, when they can still go on. */
  readonly waitingCalls: string[]
  /** The chunks that end the stream, open parts closed. */
  close(ending: Ending, metadata: RunMetadata): Chunk[]
  /** Continues after a stored chunk, as if this writer had made it. */
  replay(chunk: Chunk): void
}

/** Over 100 lines: one state of the open parts, with a case for each event. */
export function createWriter({ messageId, before = [], clientTools = [] }: WriterInit = {}): Writer {
  const open = new Map<string, PartKind>()
  const openByEngineId = new Map<string, string>()
  const calls = createCalls(before, clientTools)
  let parts = 0

  function replay(chunk: Chunk): void {
    calls.replay(chunk)
    switch (chunk.type) {
      case 'text-start':
      case 'reasoning-start':
        parts += 1
        open.set(chunk.id, chunk.type === 'text-start' ? 'text' : 'reasoning')
        return
      case 'text-end':
      case 'reasoning-end':
        open.delete(chunk.id)
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

  const nextStep = (): Chunk[] => (calls.isStepComplete ? [{ type: 'start-step' }] : [])

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

  function chunksOf(event: RunEvent): Chunk[] {
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
      case 'file':
        return [...endParts(), { type: 'file', mediaType: event.mediaType, url: event.url }]
      case 'source': {
        const { id: sourceId, url, title } = event
        return [...endParts(), { type: 'source-url', sourceId, url, ...(title !== undefined && { title }) }]
      }
      case 'data':
        return [{ type: `data-${event.name}`, id: event.id, data: storable(event.data) }]
      case 'steering':
        return [...endParts(), { type: 'steering-message', id: event.id, parts: event.parts }]
      case 'notice': {
        const { level, code, text } = event
        return [{ type: 'data-notice', data: { level, code, text }, transient: true }]
      }
      default: {
        const chunks = calls.write(event)
        return chunks[0]?.type === 'tool-input-start' ? [...endParts(), ...chunks] : chunks
      }
    }
  }

  return {
    start: () => [{ type: 'start', ...(messageId !== undefined && { messageId }) }],
    write: event => written(...chunksOf(event)),
    get waitingCalls() {
      return calls.waiting
    },
    close: (ending, messageMetadata) => [
      // The step counts the outputs of the calls that are closed here.
      ...written(...endParts(), ...calls.close(ending)),
      ...written(...nextStep(), { type: 'message-metadata', messageMetadata }, ...lastChunks(ending)),
    ],
    replay,
  }
}
