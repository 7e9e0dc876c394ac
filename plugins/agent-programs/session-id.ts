import type { StoredMessage, Turn } from '../../src/plugin-api/index.ts'

/**
 * A program's session. Its thread keeps it as `PROGRAM:ID#COUNT`, where COUNT is the number of user messages that the program
 * got. A `!` at the end says that the program may not have saved the last one: it may have been killed in that turn.
 */
export interface Session {
  id: string
  isSure: boolean
}

/** @param steered how many messages the program took while it worked */
export const writeSession = (name: string, { id, isSure }: Session, { history, prompt }: Turn, steered = 0): string =>
  `${name}:${id}#${countUserMessages([...history, ...prompt]) + steered}${isSure ? '' : '!'}`

/**
 * Undefined when the session does not match the thread any more: another engine answered since, a turn never reached the
 * program, or an answer was taken back.
 */
export function readSession(
  name: string,
  { engineSessionId = '', history, prompt, continues }: Turn,
): Session | undefined {
  if (!engineSessionId.startsWith(`${name}:`)) return undefined
  // A program that waits has the message that is being answered.
  const earlier = continues ? [...history, ...prompt] : history
  const [, id, count, mark] = /^(.+)#(\d+)(!?)$/.exec(engineSessionId.slice(name.length + 1)) ?? []
  return id !== undefined && Number(count) === countUserMessages(earlier) ? { id, isSure: mark === '' } : undefined
}

const countUserMessages = (messages: readonly StoredMessage[]): number =>
  messages.filter(({ role }) => role === 'user').length
