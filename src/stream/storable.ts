/** A value as JSON can have it: one that JSON cannot express, or omits, would break the stream. */
export function storable(value: unknown): unknown {
  try {
    return JSON.stringify(value) === undefined ? null : value
  } catch {
    return String(value)
  }
}
