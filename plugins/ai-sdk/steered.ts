import type { EngineContext, EngineEvent, ModelAccess } from '../../src/plugin-api/index.ts'
import type { ContextEntry } from './context/context-entries.ts'
import { toEntries } from './context/history.ts'

/** Takes what the user has said meanwhile, for the next model call. */
export function* takeSteered(
  steering: EngineContext['steering'],
  wire: ModelAccess['wire'],
): Generator<EngineEvent, ContextEntry[]> {
  const messages = steering?.take() ?? []
  for (const { id } of messages) yield { type: 'steered', messageId: id }
  return toEntries(messages, wire)
}
