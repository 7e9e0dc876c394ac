/** Texts around wildcards: the first begins what matches, the last ends it. One text is compared as a whole. */
export type Pieces = readonly string[]

/** Splits a text at each `*`. A `\*` stands for the character itself. */
export function splitAtStars(text: string): Pieces {
  const pieces: string[] = []
  let piece = ''
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ''
    if (char === '\\' && text[at + 1] === '*') {
      piece += '*'
      at++
    } else if (char === '*') {
      pieces.push(piece)
      piece = ''
    } else piece += char
  }
  return [...pieces, piece]
}

/** Writes a text so that none of its characters is a wildcard. */
export const escapeStars = (text: string): string => text.replaceAll('*', '\\*')

/** Whether a text is the pieces in order, with anything between them. */
export function matchesPieces(text: string, pieces: Pieces): boolean {
  const [first = '', ...rest] = pieces
  const last = rest.pop()
  if (last === undefined) return text === first
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const piece of rest) {
    const found = text.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}
