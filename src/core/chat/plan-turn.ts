import type { Database } from 'bun:sqlite'
import { findPlace, idAfter, lastMessages } from '../../db/messages.ts'
import type { StoredMessage } from '../../plugin-api/index.ts'
import type { Asked, Identified } from './asked.ts'

/** What a chat does to its thread, and what its engine is given. */
export interface TurnPlan {
  prompt: StoredMessage[]
  /** What was said before the prompt, from the thread's end. */
  history: StoredMessage[]
  /** Messages to add to the thread; those that it has already are skipped. */
  messages: StoredMessage[]
  /** Present when the thread is cut first: from this message on, or only of its engine's session. */
  cut?: { from: string | undefined }
}

/** No more than any model takes: a thread may have any length. */
const HISTORY = { messages: 2000, characters: 8 * 1024 * 1024 }

/** Decides what of a chat is new to its thread, and what is answered again. Changes nothing. */
export function planTurn(db: Database, threadId: string, asked: Asked, { ownIds }: Identified): TurnPlan {
  const find = (id: string | undefined) => (id === undefined ? undefined : findPlace(db, threadId, id))
  const said = asked.prompt.filter(({ role }) => role === 'user')
  if (idAfter(db, threadId, 0) === undefined)
    return { prompt: said, history: asked.before, messages: [...asked.before, ...asked.prompt] }
  const replaced = find(asked.replaces)
  const edited = replaced?.role === 'user' ? replaced : undefined
  // A message that the thread has is answered again.
  const answered = edited ?? find(said[0]?.id)
  const isKnown = (id: string) => find(id) !== undefined
  const prompt = answered ? said : [...refusedBefore(asked, ownIds, isKnown), ...said]
  const history = lastMessages(db, threadId, HISTORY, answered?.position).map(({ id, role, parts }) => ({
    id,
    role,
    parts,
  }))
  const plan = { prompt, history, messages: prompt }
  if (edited) return { ...plan, cut: { from: asked.replaces } }
  return answered && asked.isAgain ? { ...plan, cut: { from: idAfter(db, threadId, answered.position) } } : plan
}

/** Finds what the user said just before and the thread lacks, as after a 409. Without an id it may be there under another. */
function refusedBefore(
  { before }: Asked,
  ownIds: ReadonlySet<string>,
  isKnown: (id: string) => boolean,
): StoredMessage[] {
  const last = before.findLastIndex(({ id, role }) => role !== 'user' || !ownIds.has(id) || isKnown(id))
  return before.slice(last + 1)
}
