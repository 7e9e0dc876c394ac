import type { ChatMessage } from './chat-message.ts'

/** The newest messages as the server has them, behind those before them that were shown already. */
export function withEarlier(shown: readonly ChatMessage[], newest: readonly ChatMessage[]): ChatMessage[] {
  const at = shown.findIndex(({ id }) => id === newest[0]?.id)
  return [...shown.slice(0, Math.max(at, 0)), ...newest]
}
