/** A JSON object that somebody else wrote: nothing is known of its fields. */
export type JsonObject = Record<string, unknown>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The object, or undefined for any other value. */
export const objectOf = (value: unknown): JsonObject | undefined => (isObject(value) ? value : undefined)

/** The objects of a list; none for any other value. */
export const objectsOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** The value of a text; undefined when it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A pointer of RFC 6901 as people write a field: `a.0.b`. Empty for the whole value. */
export const fieldOf = (pointer: string): string =>
  pointer.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
