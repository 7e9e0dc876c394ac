/** Of one call. */
export const MAX_BODY_BYTES = 32 * 1024 * 1024

/** A request's whole body; undefined when it is more than a call may have. */
export async function readBody(request: Request): Promise<Buffer | undefined> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) return undefined
  const chunks: Uint8Array[] = []
  let byteLength = 0
  for await (const chunk of request.body ?? []) {
    byteLength += chunk.byteLength
    if (byteLength > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** A JSON object, or undefined. */
export const parseObject = (text: string): Record<string, unknown> | undefined => objectOf(parse(text))

/** The objects of a JSON list. */
export function parseObjects(text: string): Record<string, unknown>[] {
  const value = parse(text)
  return Array.isArray(value) ? value.map(objectOf).filter(item => item !== undefined) : []
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const objectOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
