import { objectOf } from '../../../src/read/json.ts'
import { cutMiddle, type OutputPart, type ToolOutput } from '../tools/output.ts'

/** Converts the result of a server's tool. Throws when the server marks it as an error. */
export function toOutput(result: unknown): ToolOutput {
  const { content, isError, structuredContent } = objectOf(result) ?? {}
  const parts = Array.isArray(content) ? content.map(toPart) : []
  if (parts.length === 0 && structuredContent !== undefined) {
    parts.push({ type: 'text', text: JSON.stringify(structuredContent) })
  }
  const text = parts.map(part => (part.type === 'text' ? part.text : '')).join('\n')
  if (isError) throw new Error(text || 'The tool failed.')
  return parts.some(({ type }) => type === 'image') ? parts : cutMiddle(text) || '(no output)'
}

function toPart(value: unknown): OutputPart {
  const { type, text, data, mimeType, resource } = objectOf(value) ?? {}
  if (type === 'text' && typeof text === 'string') return { type, text: cutMiddle(text) }
  if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string') {
    return { type, mediaType: mimeType, data }
  }
  const resourceText = objectOf(resource)?.text
  if (typeof resourceText === 'string') return { type: 'text', text: cutMiddle(resourceText) }
  return { type: 'text', text: `(${String(type)}: ${cutMiddle(JSON.stringify(value) ?? '', 500)})` }
}
