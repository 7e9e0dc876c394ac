import type { EngineEvent } from '../plugin-api/index.ts'
import type { SteeringPart } from './chunk.ts'

/** What a run takes: an engine's events, with what the server adds to them. */
export type RunEvent =
  | Exclude<EngineEvent, { type: 'approval-request' | 'steered' }>
  /** The approval is stored under this id. */
  | { type: 'approval-request'; callId: string; approvalId: string; reason?: string }
  /** A person has decided on a call of the reply that goes on. */
  | { type: 'approval-response'; callId: string; approvalId: string; approved: boolean; reason?: string }
  | { type: 'steering'; id: string; parts: SteeringPart[] }
