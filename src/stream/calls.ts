import type { MessagePart } from '../plugin-api/index.ts'
import { objectOf } from '../read/json.ts'
import type { Chunk } from './chunk.ts'
import { type Ending, lostResult } from './ending.ts'
import type { RunEvent } from './run-event.ts'
import { countStepCalls } from './step-calls.ts'
import { storable } from './storable.ts'

/** The tool calls of a stream: each begins, is called and ends once, whatever the engine does. */
export interface Calls {
  /** The chunks of an event that is about a call; an empty list for one that makes no sense here, or is about something else. */
  write(event: RunEvent): Chunk[]
  /** The outputs of the calls that the ending does not leave open. */
  close(ending: Ending): Chunk[]
  /** Continues after a chunk. */
  replay(chunk: Chunk): void
  /** The calls that wait: for a person's decision, or for the client. */
  readonly waiting: string[]
  /** True when a client might take the current step for its turn: a new one has to begin. */
  readonly isStepComplete: boolean
}

interface Call {
  name: string
  /** `asking`: for a person's approval; `approved`: it has that, and was not executed yet. */
  step: 'begun' | 'called' | 'asking' | 'approved' | 'done'
  isClients: boolean
}

const providerExecuted = true as const
/** Marks what the server runs, so that the client does not run it. */
const markOf = (isClients: boolean) => (isClients ? {} : { providerExecuted })

/** Over 100 lines: one state of the calls, with a case for each event and chunk. */
export function createCalls(before: readonly MessagePart[], clientTools: readonly string[]): Calls {
  const calls = new Map<string, Call>()
  /** The calls by the approvals that they asked for. */
  const approvals = new Map<string, string>()
  const ofClient = new Set(clientTools)
  const inStep = countStepCalls()

  const stepOf = (callId: string) => calls.get(callId)?.step
  const setStep = (callId: string, step: Call['step']) => {
    const call = calls.get(callId)
    if (call) call.step = step
  }

  for (const part of before) {
    if (part.type === 'step-start') inStep.reset()
    const { toolCallId, state } = part
    if (typeof toolCallId !== 'string' || typeof state !== 'string') continue
    const isClients = part.providerExecuted !== true
    inStep.begin(isClients)
    if (steps[state] === undefined) inStep.end(state === 'output-available')
    const approvalId = objectOf(part.approval)?.id
    if (typeof approvalId === 'string') approvals.set(approvalId, toolCallId)
    calls.set(toolCallId, { name: part.type.slice('tool-'.length), step: steps[state] ?? 'done', isClients })
  }

  const begin = (toolCallId: string, toolName: string): Chunk[] =>
    calls.has(toolCallId) ? [] : [{ type: 'tool-input-start', toolCallId, toolName, ...markOf(ofClient.has(toolName)) }]

  return {
    write(event) {
      switch (event.type) {
        case 'tool-input': {
          const { callId: toolCallId, name, delta } = event
          if ((stepOf(toolCallId) ?? 'begun') !== 'begun') return []
          const begun = begin(toolCallId, name)
          return delta === '' ? begun : [...begun, { type: 'tool-input-delta', toolCallId, inputTextDelta: delta }]
        }
        case 'tool-call': {
          const { callId: toolCallId } = event
          if ((stepOf(toolCallId) ?? 'begun') !== 'begun') return []
          const toolName = calls.get(toolCallId)?.name ?? event.name
          const called = { toolCallId, toolName, input: storable(event.input), ...markOf(ofClient.has(toolName)) }
          return [...begin(toolCallId, toolName), { type: 'tool-input-available', ...called }]
        }
        case 'tool-result': {
          const { callId: toolCallId, output, error } = event
          const call = calls.get(toolCallId)
          if (!call || call.step === 'done') return []
          const mark = markOf(call.isClients)
          if (error !== undefined) return [{ type: 'tool-output-error', toolCallId, errorText: error, ...mark }]
          return [{ type: 'tool-output-available', toolCallId, output: storable(output), ...mark }]
        }
        case 'approval-request': {
          const { callId: toolCallId, approvalId, reason } = event
          if (stepOf(toolCallId) !== 'called') return []
          return [{ type: 'tool-approval-request', approvalId, toolCallId, ...(reason !== undefined && { reason }) }]
        }
        case 'approval-response': {
          const { callId: toolCallId, approvalId, approved, reason } = event
          if (stepOf(toolCallId) !== 'asking') return []
          return [
            { type: 'tool-approval-response', approvalId, approved, ...(reason !== undefined && { reason }) },
            ...(approved ? [] : [{ type: 'tool-output-denied' as const, toolCallId }]),
          ]
        }
        case 'tool-begin':
          return [{ type: 'data-tool-begin', data: { toolCallId: event.callId }, transient: true }]
        case 'tool-progress': {
          const { callId: toolCallId, data } = event
          if (stepOf(toolCallId) !== 'called') return []
          return [{ type: 'data-tool-progress', data: storable({ ...data, toolCallId }), transient: true }]
        }
        default:
          return []
      }
    },
    close: ending =>
      [...calls]
        .filter(([, call]) => call.step !== 'done' && !isLeftOpen(call, ending))
        .map(([toolCallId, { isClients }]) => ({
          type: 'tool-output-error',
          toolCallId,
          errorText: lostResult(ending),
          ...markOf(isClients),
        })),
    replay(chunk) {
      switch (chunk.type) {
        case 'start-step':
          inStep.reset()
          return
        case 'tool-input-start': {
          const isClients = !chunk.providerExecuted
          inStep.begin(isClients)
          calls.set(chunk.toolCallId, { name: chunk.toolName, step: 'begun', isClients })
          return
        }
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
          if (stepOf(chunk.toolCallId) !== 'done') inStep.end(chunk.type === 'tool-output-available')
          setStep(chunk.toolCallId, 'done')
      }
    },
    get waiting() {
      return [...calls].flatMap(([callId, call]) => (isWaiting(call) ? [callId] : []))
    },
    get isStepComplete() {
      return inStep.isComplete
    },
  }
}

const isWaiting = ({ step, isClients }: Call): boolean =>
  step === 'asking' || step === 'approved' || (step === 'called' && isClients)

/** A program that waits may be at work on other calls meanwhile: their results come later, unless the server stopped. */
function isLeftOpen(call: Call, ending: Ending): boolean {
  if (ending.status !== 'waiting') return false
  return ending.lostText === undefined ? call.step !== 'begun' : isWaiting(call)
}

/** The steps of calls by the states of stored parts. Any other state is `done`. */
const steps: Readonly<Record<string, Call['step']>> = {
  'input-available': 'called',
  'approval-requested': 'asking',
  'approval-responded': 'approved',
}
