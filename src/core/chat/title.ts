import type { Database } from 'bun:sqlite'
import { nameIfUnnamed } from '../../db/threads.ts'
import type { Thread } from '../../model/thread.ts'
import type { StoredMessage } from '../../plugin-api/index.ts'
import { textOf } from '../../stream/message.ts'

const MAX_LENGTH = 60
/** A title needs no more of a message. */
const MAX_READ = 4000

/** Names a thread that has no name by the first of these messages that a user has written. */
export function giveTitle(db: Database, thread: Thread, messages: readonly StoredMessage[]): void {
  if (thread.name !== null) return
  const first = messages.find(({ role }) => role === 'user')
  const title = first && toTitle(textOf(first.parts))
  if (title) nameIfUnnamed(db, thread.id, title)
}

/** The first line that has words, without the signs of Markdown: whole words of at most 60 characters. Empty without words. */
export function toTitle(text: string): string {
  const lines = text.slice(0, MAX_READ).split(/[\r\n\u2028\u2029]/)
  const plain = lines.map(line => toPlain(line)).find(line => line !== '') ?? ''
  const characters = Array.from(plain)
  if (characters.length <= MAX_LENGTH) return plain
  const cut = characters.slice(0, MAX_LENGTH + 1).join('')
  const end = cut.lastIndexOf(' ')
  return end > 0 ? cut.slice(0, end) : characters.slice(0, MAX_LENGTH).join('')
}

/** Characters that show nothing, or change how others are shown, are left out. */
const toPlain = (line: string): string => {
  const words = line.replaceAll(/[`*~]|\p{Cf}|\p{Cs}/gu, '').split(/[\s\p{Cc}]/u)
  const first = words.findIndex(word => /[^#>_=+\-|]/.test(word))
  return first < 0
    ? ''
    : words
        .slice(first)
        .filter(word => word !== '')
        .join(' ')
}
