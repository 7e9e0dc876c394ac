import { cutMiddle, type OutputPart, type ToolOutput } from '../output.ts'

/** What a server's tool gave, as a tool's output. Throws what the server calls an error. */
export function toOutput(result: unknown): ToolOutput {
  const { content, isError, structuredContent } = {
    content: [],
    isError: false,
    structuredContent: undefined,
    ...asObject(result),
  }
  const parts = Array.isArray(content) ? content.map(toPart) : []
  if (parts.length === 0 && structuredContent !== undefined) {
    parts.push({ type: 'text', text: JSON.stringify(structuredContent) })
  }
  const text = parts.map(part => (part.type === 'text' ? part.text : '')).join('\n')
  if (isError) throw new Error(text || 'The tool failed.')
  return parts.some(({ type }) => type === 'image') ? parts : cutMiddle(text) || '(no output)'
}

function toPart(value: unknown): OutputPart {
  const part: { [field: string]: unknown } = { ...asObject(value) }
  const { type, text, data, mimeType } = part
  if (type === 'text' && typeof text === 'string') return { type, text: cutMiddle(text) }
  if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string') {
    return { type, mediaType: mimeType, data }
  }
  const resource: { [field: string]: unknown } = { ...asObject(part.resource) }
  if (typeof resource.text === 'string') return { type: 'text', text: cutMiddle(resource.text) }
  return { type: 'text', text: `(${String(type)}: ${cutMiddle(JSON.stringify(value) ?? '', 500)})` }
}

const asObject = (value: unknown): object => (typeof value === 'object' && value !== null ? value : {})
