import { numbered, type TextFile } from './text-file.ts'

export interface Replacement {
  old_string: string
  new_string: string
  replace_all?: boolean | undefined
}

const SNIPPET_LINES = 4
const MAX_SNIPPET_LINES = 60

/** The text after one replacement. Throws when the old text is missing or ambiguous. */
export function replace(
  { text, isCrlf }: TextFile,
  { old_string, new_string, replace_all = false }: Replacement,
): string {
  const toFile = (value: string) => (isCrlf && !value.includes('\r') ? value.replaceAll('\n', '\r\n') : value)
  const wanted = toFile(old_string)
  if (wanted === '') throw new Error('old_string is empty. To make a new file, use Write.')
  if (old_string === new_string) throw new Error('No changes to make: old_string and new_string are exactly the same.')
  const pieces = text.split(wanted)
  const count = pieces.length - 1
  if (count === 0) {
    throw new Error(
      `String to replace not found in file. It must match exactly, white space too.\nString: ${old_string}`,
    )
  }
  if (count > 1 && !replace_all) {
    throw new Error(
      `Found ${count} matches of the string to replace, but replace_all is false. To replace all, set replace_all to true. To replace one, give more of its surroundings.\nString: ${old_string}`,
    )
  }
  return pieces.join(toFile(new_string))
}

/** The lines around the first change, for the model to see what it did. */
export function snippet(before: string, after: string): string {
  let same = 0
  while (same < before.length && before[same] === after[same]) same++
  let sameEnd = 0
  const most = Math.min(before.length, after.length) - same
  while (sameEnd < most && before.at(-1 - sameEnd) === after.at(-1 - sameEnd)) sameEnd++
  const first = Math.max(0, after.slice(0, same).split('\n').length - 1 - SNIPPET_LINES)
  const last = after.slice(0, after.length - sameEnd).split('\n').length + SNIPPET_LINES
  const lines = after.split('\n').slice(first, Math.min(last, first + MAX_SNIPPET_LINES))
  return numbered(
    lines.map(line => line.replace(/\r$/, '').slice(0, 500)),
    first + 1,
  )
}

export const updated = (path: string, before: string, after: string): string =>
  `The file ${path} has been updated. Here's the result of running \`cat -n\` on a snippet of the edited file:\n${snippet(before, after)}`
