import type { UIMessage } from 'ai'

interface Call {
  toolCallId: string
  state: string
  providerExecuted?: boolean
}

const isCall = (part: object): part is Call => 'toolCallId' in part && 'state' in part

const isOpen = ({ state, providerExecuted }: Call) =>
  state === 'approval-requested' || (state === 'input-available' && !providerExecuted)

const isAnswered = ({ state, providerExecuted }: Call) =>
  state === 'approval-responded' || (['output-available', 'output-error'].includes(state) && !providerExecuted)

/**
 * A function for `sendAutomaticallyWhen` of `useChat`. It returns whether the last message ends in calls that the client or a
 * person has answered, and none of them still waits. Calls of the server's own tools are ignored.
 */
export function lastMessageIsAnswered({ messages }: { messages: readonly UIMessage[] }): boolean {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return false
  const parts: readonly object[] = last.parts
  if (parts.some(part => isCall(part) && isOpen(part))) return false
  // What follows an answered call is the reply to that answer.
  const trailing = parts.slice(parts.findLastIndex(part => !isCall(part)) + 1)
  return trailing.some(part => isCall(part) && isAnswered(part))
}
