import type { Posted } from './asked.ts'
import type { PlaceRequest } from './chat-place.ts'
import type { ChatOptions } from './turn-options.ts'

export interface ChatRequest extends Posted, PlaceRequest {
  background: boolean
  options: ChatOptions
  /** What becomes of the message while its thread has a run under way. Default: reject. */
  whenBusy?: 'reject' | 'queue' | 'steer'
}
