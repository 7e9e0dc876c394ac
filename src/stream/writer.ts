import type { MessagePart } from '../plugin-api/index.ts'
import { objectOf } from '../read/json.ts'
import type { Chunk, FinishReason, PartKind, RunMetadata } from './chunk.ts'
import type { RunEvent } from './run-event.ts'
import { countStepCalls } from './step-calls.ts'

/** How a run ends. `waiting`: calls stay open, for a person or for the client. */
export type Ending =
  | { status: 'completed' | 'cancelled' }
  /** `lostText`: the server stopped meanwhile, so calls that ran have no result. */
  | { status: 'waiting'; lostText?: string }
  | { status: 'failed' | 'interrupted'; errorText: string }

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

interface Tool {
  name: string
  /** `asking`: for a person's approval; `approved`: it has that, and was not executed yet. */
  step: 'begun' | 'called' | 'asking' | 'approved' | 'done'
  isClients: boolean
}

const providerExecuted = true as const

/** Over 100 lines: one state of the open parts, with a case for each event. */
export function createWriter({ messageId, before = [], clientTools = [] }: WriterInit = {}): Writer {
  const open = new Map<string, PartKind>()
  const openByEngineId = new Map<string, string>()
  const tools = new Map<string, Tool>()
  /** The calls by the approvals that they asked for. */
  const approvals = new Map<string, string>()
  const ofClient = new Set(clientTools)
  const executed = (name: string) => (ofClient.has(name) ? {} : { providerExecuted })
  let parts = 0
  const calls = countStepCalls()

  const setStep = (toolCallId: string, step: Tool['step']) => {
    const tool = tools.get(toolCallId)
    if (tool) tool.step = step
  }

  function replay(chunk: Chunk): void {
    switch (chunk.type) {
      case 'start-step':
        calls.reset()
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
        calls.begin(!chunk.providerExecuted)
        tools.set(chunk.toolCallId, { name: chunk.toolName, step: 'begun', isClients: !chunk.providerExecuted })
        return
      case 'tool-input-available':
        setStep(chunk.toolCallId, 'called')
        return
      case 'tool-approval-request':
        approvals.set(chunk.approvalId, chunk.toolCallId)
        setStep(chunk.toolCallId, 'asking')
        return
      case 'tool-approval-response':
        setStep(approvals.get(chunk.approvalId) ?? '', 'approved')
        return
      case 'data-tool-begin':
        setStep(String(objectOf('data' in chunk ? chunk.data : undefined)?.toolCallId), 'called')
        return
      case 'tool-output-denied':
      case 'tool-output-available':
      case 'tool-output-error':
        if (tools.get(chunk.toolCallId)?.step !== 'done') calls.end(chunk.type === 'tool-output-available')
        setStep(chunk.toolCallId, 'done')
        return
    }
  }

  for (const part of before) {
    if (part.type === 'step-start') calls.reset()
    const { toolCallId, state } = part
    if (typeof toolCallId !== 'string' || typeof state !== 'string') continue
    const isClients = part.providerExecuted !== true
    calls.begin(isClients)
    if (steps[state] === undefined) calls.end(state === 'output-available')
    const approvalId = objectOf(part.approval)?.id
    if (typeof approvalId === 'string') approvals.set(approvalId, toolCallId)
    const name = part.type.slice('tool-'.length)
    tools.set(toolCallId, { name, step: steps[state] ?? 'done', isClients })
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

  const nextStep = (): Chunk[] => (calls.isComplete ? [{ type: 'start-step' }] : [])

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
    tools.has(toolCallId)
      ? []
      : [...endParts(), { type: 'tool-input-start', toolCallId, toolName, ...executed(toolName) }]

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
          { type: 'tool-input-available', toolCallId: event.callId, toolName, input, ...executed(toolName) },
        ]
      }
      case 'tool-result': {
        const { callId: toolCallId, output, error } = event
        const tool = tools.get(toolCallId)
        if (!tool || tool.step === 'done') return []
        const mark = tool.isClients ? {} : { providerExecuted }
        if (error !== undefined) return [{ type: 'tool-output-error', toolCallId, errorText: error, ...mark }]
        return [{ type: 'tool-output-available', toolCallId, output: storable(output), ...mark }]
      }
      case 'approval-request': {
        const { callId: toolCallId, approvalId, reason } = event
        if (tools.get(toolCallId)?.step !== 'called') return []
        return [{ type: 'tool-approval-request', approvalId, toolCallId, ...(reason !== undefined && { reason }) }]
      }
      case 'approval-response': {
        const { callId: toolCallId, approvalId, approved, reason } = event
        if (tools.get(toolCallId)?.step !== 'asking') return []
        return [
          { type: 'tool-approval-response', approvalId, approved, ...(reason !== undefined && { reason }) },
          ...(approved ? [] : [{ type: 'tool-output-denied' as const, toolCallId }]),
        ]
      }
      case 'tool-begin':
        return [{ type: 'data-tool-begin', data: { toolCallId: event.callId }, transient: true }]
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
    start: () => [{ type: 'start', ...(messageId !== undefined && { messageId }) }],
    write: event => written(...chunksOf(event)),
    get waitingCalls() {
      return [...tools].flatMap(([toolCallId, tool]) => (isWaiting(tool) ? [toolCallId] : []))
    },
    close(ending, messageMetadata) {
      const open = [...tools].filter(([, tool]) => tool.step !== 'done' && !isLeftOpen(tool, ending))
      return written(
        ...endParts(),
        ...open.map(([toolCallId, { isClients }]) => ({
          type: 'tool-output-error' as const,
          toolCallId,
          errorText: lostResult(ending),
          ...(!isClients && { providerExecuted }),
        })),
        ...nextStep(),
        { type: 'message-metadata', messageMetadata },
        ...lastWord(ending),
        { type: 'finish', finishReason: finishReasons[ending.status] },
      )
    },
    replay,
  }
}

const isWaiting = ({ step, isClients }: Tool): boolean =>
  step === 'asking' || step === 'approved' || (step === 'called' && isClients)

/** A program that waits may be at work on other calls meanwhile: their results come later, unless the server stopped. */
function isLeftOpen(tool: Tool, ending: Ending): boolean {
  if (ending.status !== 'waiting') return false
  return ending.lostText === undefined ? tool.step !== 'begun' : isWaiting(tool)
}

/** The steps of calls by the states of stored parts. Any other state is `done`. */
const steps: Readonly<Record<string, Tool['step']>> = {
  'input-available': 'called',
  'approval-requested': 'asking',
  'approval-responded': 'approved',
}

const finishReasons: Readonly<Record<Ending['status'], FinishReason>> = {
  completed: 'stop',
  waiting: 'tool-calls',
  cancelled: 'other',
  failed: 'error',
  interrupted: 'interrupted',
}

function lostResult(ending: Ending): string {
  if ('errorText' in ending) return ending.errorText
  if (ending.status === 'waiting' && ending.lostText !== undefined) return ending.lostText
  return ending.status === 'cancelled' ? 'cancelled' : 'no result'
}

function lastWord(ending: Ending): Chunk[] {
  if ('errorText' in ending) return [{ type: 'error', errorText: ending.errorText }]
  return ending.status === 'cancelled' ? [{ type: 'abort', reason: 'cancelled' }] : []
}

/** A value that JSON cannot express, or omits, would break the stream. */
function storable(value: unknown): unknown {
  try {
    return JSON.stringify(value) === undefined ? null : value
  } catch {
    return String(value)
  }
}
