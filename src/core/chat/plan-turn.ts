import type { Database } from 'bun:sqlite'
import { newId } from '../../db/id.ts'
import { findAfter, findMessage, findPlace, lastMessages, lastQuestion } from '../../db/messages.ts'
import { findQueued } from '../../db/queued-messages.ts'
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
export const HISTORY = { messages: 2000, characters: 8 * 1024 * 1024 }

/** Decides what of a chat is new to its thread, and what is answered again. Changes nothing. */
export function planTurn(db: Database, threadId: string, asked: Asked, { ownIds, messageId }: Identified): TurnPlan {
  const find = (id: string | undefined) => (id === undefined ? undefined : findPlace(db, threadId, id))
  const said = asked.prompt.filter(({ role }) => role === 'user')
  if (!findAfter(db, threadId, 0))
    return { prompt: said, history: asked.before, messages: [...asked.before, ...asked.prompt] }
  const history = (before?: number) =>
    lastMessages(db, threadId, HISTORY, before).map(({ id, role, parts }) => ({ id, role, parts }))
  const findUsers = (id = '') => {
    const place = find(id)
    return place?.role === 'user' ? { id, ...place } : undefined
  }
  const edited = findUsers(asked.replaces)
  const known = edited ?? findUsers(said[0]?.id)
  const stored = known && findMessage(db, threadId, known.id)
  if (known && stored) {
    // A message of another wording is an edit, whatever the client calls it.
    const isEdit = edited !== undefined || !said.every(({ parts }) => Bun.deepEquals(parts, stored.parts))
    const isFree = (id: string) => ownIds.has(id) && (find(id)?.position ?? known.position) >= known.position
    const prompt = said.map(message => (isFree(message.id) ? message : { ...message, id: stored.id }))
    const plan = { prompt, history: history(known.position), messages: prompt }
    if (isEdit) return { ...plan, cut: { from: stored.id } }
    return asked.isAgain ? { ...plan, cut: { from: findAfter(db, threadId, known.position)?.id } } : plan
  }
  const again = asked.isAgain ? findAgain(db, threadId, said, find(messageId)?.position, ownIds) : undefined
  if (again) {
    const { position, ...question } = again
    return {
      prompt: [question],
      history: history(position),
      messages: [],
      cut: { from: findAfter(db, threadId, position)?.id },
    }
  }
  // An id that the thread has is the agent's here.
  const added = said.map(message => (find(message.id) ? { ...message, id: newId('msg') } : message))
  const isKnown = (id: string) => find(id) !== undefined || findQueued(db, threadId, id) !== undefined
  const prompt = [...refusedBefore(asked, ownIds, isKnown), ...added]
  return { prompt, history: history(), messages: prompt }
}

/**
 * Finds the question that a client means which sends it by no id of the thread: that of the message it names, or the
 * last one, when it is what was sent.
 */
function findAgain(
  db: Database,
  threadId: string,
  said: readonly StoredMessage[],
  named: number | undefined,
  ownIds: ReadonlySet<string>,
) {
  if (named !== undefined) return lastQuestion(db, threadId, named)
  const last = lastQuestion(db, threadId)
  return said.every(({ id, parts }) => !ownIds.has(id) && Bun.deepEquals(parts, last?.parts)) ? last : undefined
}

/** Finds what the user said just before and neither the thread nor its queue has, as after a 409. Without an id it may be there under another. */
export function refusedBefore(
  { before }: Asked,
  ownIds: ReadonlySet<string>,
  isKnown: (id: string) => boolean,
): StoredMessage[] {
  const last = before.findLastIndex(({ id, role }) => role !== 'user' || !ownIds.has(id) || isKnown(id))
  return before.slice(last + 1)
}
