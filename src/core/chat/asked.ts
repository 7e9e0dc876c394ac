import { newId } from '../../db/id.ts'
import { ApiError } from '../../errors.ts'
import type { StoredMessage } from '../../plugin-api/index.ts'

/** What a client posts, in the form of the AI SDK. */
export interface Posted {
  messages: PostedMessage[]
  /** `regenerate-message` answers a user message anew. */
  trigger?: string
  /** The id of the message that is regenerated or edited. */
  messageId?: string
}

/** A message whose client may leave its id to the server. */
export type PostedMessage = Omit<StoredMessage, 'id'> & { id?: string | undefined }

/** A chat whose messages all have an id. */
export interface Identified extends Posted {
  messages: StoredMessage[]
  /** Ids that the client has given; any other message has one of ours, and may be in the thread under another. */
  ownIds: ReadonlySet<string>
}

export const identify = <Chat extends Posted>(chat: Chat): Chat & Identified => ({
  ...chat,
  messages: chat.messages.map(message => ({ ...message, id: message.id || newId('msg') })),
  ownIds: new Set(chat.messages.flatMap(({ id }) => id || [])),
})

export interface Asked {
  /** What was said before, as the client has it. */
  before: StoredMessage[]
  /** The message to answer, with system messages behind it if there are any. */
  prompt: StoredMessage[]
  /** The prompt takes the place of the thread's message of this id, when the thread has it as a user's. */
  replaces?: string
  /** The prompt is answered anew: what the thread has behind it goes. */
  isAgain: boolean
}

/** What is to be answered. Throws invalid_request when there is nothing. */
export function findQuestion({ messages, trigger, messageId }: Identified): Asked {
  const isAgain = trigger === 'regenerate-message'
  const said = isAgain ? untilRegenerated(messages, messageId) : messages
  const index = said.findLastIndex(({ role }) => role === 'user')
  if (!said[index]?.parts.some(isAnswerable)) {
    throw new ApiError('invalid_request', 'messages: the last user message has neither text nor image', {
      field: 'messages',
    })
  }
  const before = said.slice(0, index)
  const isEdit = messageId !== undefined && !isAgain && !before.some(({ id }) => id === messageId)
  return { before, prompt: said.slice(index), isAgain, ...(isEdit && { replaces: messageId }) }
}

/** A client leaves out what is to be made anew; one that does not names it, or means the last reply. */
function untilRegenerated(messages: readonly StoredMessage[], messageId: string | undefined): StoredMessage[] {
  const named = messages.findIndex(({ id }) => id === messageId)
  const end = named >= 0 && messages[named]?.role === 'user' ? named + 1 : named
  const until = end >= 0 ? messages.slice(0, end) : messages
  return until.slice(0, until.findLastIndex(({ role }) => role !== 'assistant') + 1)
}

const isAnswerable = ({ type, text }: StoredMessage['parts'][number]) =>
  type === 'text' ? typeof text === 'string' && text.trim() !== '' : type === 'file' || type === 'data-image'
