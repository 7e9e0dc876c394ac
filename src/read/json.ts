/** A JSON object that somebody else wrote: nothing is known of its fields. */
export type JsonObject = Record<string, unknown>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The object, or undefined for any other value. */
export const objectOf = (value: unknown): JsonObject | undefined => (isObject(value) ? value : undefined)

/** The objects of a list; none for any other value. */
export const objectsOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** Deeper than any honest message, and not deep enough to overflow the stack of whatever walks or writes it later. */
const MAX_DEPTH = 500

/** Whether a JSON text has more than 500 arrays and objects inside each other. */
export const isTooDeep = (text: Uint8Array): boolean =>
  text.byteLength > MAX_DEPTH && shapeOf(text, { depth: MAX_DEPTH, values: Number.POSITIVE_INFINITY }).depth > MAX_DEPTH

/** The value of a text; undefined when it is not JSON, or nested deeper than 500 levels. */
export function parseJson(text: string): unknown {
  if (text.length > MAX_DEPTH && isTooDeep(Buffer.from(text))) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPENING = [0x5b, 0x7b]
const CLOSING = [0x5d, 0x7d]

/**
 * How deep a JSON text's arrays and objects are inside each other, and how many values it has, keys apart; for a text
 * that is no JSON, something. In linear time, before anything is made of it. Stops at more than `most`.
 */
export function shapeOf(text: Uint8Array, most: { depth: number; values: number }): { depth: number; values: number } {
  let depth = 0
  let deepest = 0
  let values = 1
  for (let index = 0; index < text.length; index++) {
    const byte = text[index] ?? 0
    if (byte === QUOTE) {
      // To the end of the string.
      while (++index < text.length && text[index] !== QUOTE) if (text[index] === BACKSLASH) index++
    } else if (byte === COMMA) values++
    else if (byte === OPENING[0] || byte === OPENING[1]) {
      values++
      deepest = Math.max(deepest, ++depth)
    } else if (byte === CLOSING[0] || byte === CLOSING[1]) depth--
    if (deepest > most.depth || values > most.values) break
  }
  return { depth: deepest, values }
}

/** A pointer of RFC 6901 as people write a field: `a.0.b`. Empty for the whole value. */
export const fieldOf = (pointer: string): string =>
  pointer.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
