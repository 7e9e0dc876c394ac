/** What a run reports at its end: the contract's five fields first. */
export interface RunMetadata {
  sessionId: string
  totalCostUsd: number
  inputTokens: number
  outputTokens: number
  durationMs: number
  sandboxId: string
  threadId: string
  runId: string
  /** The reply's id in its thread. Absent when the reply is empty: then no message is stored. */
  messageId?: string
  totalTokens: number
  model: string
  /** Present when the reply is not complete: how it ended. */
  status?: 'waiting' | 'cancelled' | 'failed' | 'interrupted'
}

/** The kinds of part whose content comes in deltas. */
export type PartKind = 'text' | 'reasoning'

/** Marks a tool that the server runs, so that clients do not answer the call themselves. Logs of old runs lack it. */
interface Executed {
  providerExecuted?: true
}

/** How a stream ends, for clients that read it. `interrupted`: the server stopped. */
export type FinishReason = 'stop' | 'tool-calls' | 'error' | 'interrupted' | 'other'

/** The user's message that a running turn took up. */
export interface SteeringPart {
  type: 'text' | 'file'
  [field: string]: unknown
}

/**
 * One chunk of a UI-message stream as it is stored: of version 7 of the AI SDK. A reader gets what its profile has of it.
 * Logs of old runs lack the optional fields.
 */
export type Chunk =
  | { type: 'start'; messageId?: string }
  | { type: 'start-step' }
  | { type: 'abort'; reason?: string }
  | { type: 'finish'; finishReason?: FinishReason }
  | { type: `${PartKind}-start` | `${PartKind}-end`; id: string }
  | { type: `${PartKind}-delta`; id: string; delta: string }
  | ({ type: 'tool-input-start'; toolCallId: string; toolName: string } & Executed)
  | { type: 'tool-input-delta'; toolCallId: string; inputTextDelta: string }
  | ({ type: 'tool-input-available'; toolCallId: string; toolName: string; input: unknown } & Executed)
  | ({ type: 'tool-output-available'; toolCallId: string; output: unknown } & Executed)
  | ({ type: 'tool-output-error'; toolCallId: string; errorText: string } & Executed)
  | { type: 'tool-approval-request'; approvalId: string; toolCallId: string; reason?: string }
  | { type: 'tool-approval-response'; approvalId: string; approved: boolean; reason?: string }
  | { type: 'tool-output-denied'; toolCallId: string }
  | { type: 'file'; mediaType: string; url: string }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'steering-message'; id: string; parts: SteeringPart[] }
  | { type: 'message-metadata'; messageMetadata: RunMetadata }
  | { type: 'error'; errorText: string }
  | { type: `data-${string}`; data: unknown; transient: true }
  /** A lasting part of the message. */
  | { type: `data-${string}`; id: string; data: unknown; transient?: false }

const stringFields: Readonly<Record<string, readonly string[]>> = {
  start: [],
  'start-step': [],
  abort: [],
  finish: [],
  'text-start': ['id'],
  'text-delta': ['id', 'delta'],
  'text-end': ['id'],
  'reasoning-start': ['id'],
  'reasoning-delta': ['id', 'delta'],
  'reasoning-end': ['id'],
  'tool-input-start': ['toolCallId', 'toolName'],
  'tool-input-delta': ['toolCallId', 'inputTextDelta'],
  'tool-input-available': ['toolCallId', 'toolName'],
  'tool-output-available': ['toolCallId'],
  'tool-output-error': ['toolCallId', 'errorText'],
  'tool-approval-request': ['approvalId', 'toolCallId'],
  'tool-approval-response': ['approvalId'],
  'tool-output-denied': ['toolCallId'],
  file: ['mediaType', 'url'],
  'source-url': ['sourceId', 'url'],
  'steering-message': ['id'],
  'message-metadata': [],
  error: ['errorText'],
}

const isChunk = (value: unknown): value is Chunk => {
  if (typeof value !== 'object' || value === null || !('type' in value) || typeof value.type !== 'string') return false
  const fields = value.type.startsWith('data-') ? [] : stringFields[value.type]
  return fields?.every(field => typeof Reflect.get(value, field) === 'string') ?? false
}

/** Reads a stored chunk. Throws when the text is not a chunk. */
export function parseChunk(json: string): Chunk {
  const value: unknown = JSON.parse(json)
  if (!isChunk(value)) throw new Error('A stored chunk is unreadable.')
  return value
}
