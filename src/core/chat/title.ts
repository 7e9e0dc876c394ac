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
  const lines = text
    .trimStart()
    .slice(0, MAX_READ)
    .split(/[\r\n\u2028\u2029]/)
  const plain = lines.map(line => toPlain(line)).find(line => line !== '') ?? ''
  const characters = Array.from(plain)
  if (characters.length <= MAX_LENGTH) return plain
  const cut = characters.slice(0, MAX_LENGTH + 1).join('')
  const end = cut.lastIndexOf(' ')
  return end > 0 ? cut.slice(0, end) : cutLong(plain)
}

/** Never between the characters of a flag, a family or an accented letter. */
function cutLong(word: string): string {
  let cut = ''
  for (const { segment } of new Intl.Segmenter().segment(word)) {
    if (Array.from(cut + segment).length > MAX_LENGTH) break
    cut += segment
  }
  return cut || Array.from(word).slice(0, MAX_LENGTH).join('')
}

/** Characters that show nothing, or change how others are shown, are left out, but those that words and emoji are joined by. */
const toPlain = (line: string): string => {
  const words = line.replaceAll(/[`*~]|(?![\u200c\u200d])\p{Cf}|\p{Cs}/gu, '').split(/[\s\p{Cc}]/u)
  const first = words.findIndex(word => /[^#>_=+\-|\u200c\u200d]/.test(word))
  return first < 0
    ? ''
    : words
        .slice(first)
        .filter(word => word !== '')
        .join(' ')
}
