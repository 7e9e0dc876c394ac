import type { StoredMessage, Turn } from '../../src/plugin-api/index.ts'

/**
 * A program's session as its thread keeps it: the program, its own id, how many user messages it has got, and a mark
 * while the last of them is not surely kept. A program that is killed in a turn may not have written it down.
 */
export interface Session {
  id: string
  isSure: boolean
}

export const writeSession = (name: string, { id, isSure }: Session, { history, prompt }: Turn): string =>
  `${name}:${id}#${countOf([...history, ...prompt])}${isSure ? '' : '!'}`

/**
 * None when the thread has gone another way since: by another engine, by a turn that never reached the program, or
 * because an answer was taken back.
 */
export function readSession(name: string, { engineSessionId = '', history }: Turn): Session | undefined {
  if (!engineSessionId.startsWith(`${name}:`)) return undefined
  const [, id, count, mark] = /^(.+)#(\d+)(!?)$/.exec(engineSessionId.slice(name.length + 1)) ?? []
  return id !== undefined && Number(count) === countOf(history) ? { id, isSure: mark === '' } : undefined
}

const countOf = (messages: readonly StoredMessage[]): number => messages.filter(({ role }) => role === 'user').length
