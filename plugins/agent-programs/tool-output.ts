import { objectOf, objectsOf } from '../../src/read/json.ts'

/** Converts a tool's content blocks to what a thread keeps: text, or a list of texts and images. */
export function toToolOutput(content: unknown): unknown {
  if (typeof content === 'string') return content
  const parts = objectsOf(content).flatMap(toPart)
  return parts.some(({ type }) => type === 'image') ? parts : parts.map(part => part.text).join('\n')
}

type OutputPart = { type: 'text'; text: string } | { type: 'image'; mediaType: string; data: string; text?: undefined }

function toPart({ type, text, source, data, mimeType }: Record<string, unknown>): OutputPart[] {
  if (type === 'text' && typeof text === 'string') return [{ type, text }]
  const image = objectOf(source)
  const [mediaType, bytes] = image ? [image.media_type, image.data] : [mimeType, data]
  if (type !== 'image' || typeof mediaType !== 'string' || typeof bytes !== 'string') return []
  return [{ type, mediaType, data: bytes }]
}
