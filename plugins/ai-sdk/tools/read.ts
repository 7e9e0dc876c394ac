import { z } from 'zod'
import { detectImageType, MAX_IMAGE_BYTES } from './image.ts'
import { MAX_OUTPUT_CHARS } from './output.ts'
import { numbered } from './text-file.ts'
import { defineTool, resolvePath } from './tool.ts'

/** The part of a stream's reader that is used. */
interface Reader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
}

const DEFAULT_LINES = 2000
const MAX_LINE_CHARS = 2000

export const read = defineTool({
  name: 'Read',
  description: `Reads a file. Lines come with their numbers, up to 2000 of them and 30,000 characters; give "offset" and "limit" for others. Lines beyond 2000 characters are cut. PNG, JPEG, GIF and WebP images are shown to you. For a directory use LS.`,
  input: z.object({
    file_path: z.string().min(1).describe('The absolute path of the file'),
    offset: z.coerce.number().int().min(0).optional().describe('The number of the first line'),
    limit: z.coerce.number().int().min(1).optional().describe('How many lines'),
  }),
  isReadOnly: true,
  async run({ file_path, offset = 1, limit = DEFAULT_LINES }, context) {
    const path = resolvePath(context, file_path)
    const { size, body } = await context.environment.files.read(path, context.signal)
    const reader = body.getReader()
    try {
      const first = await reader.read()
      if (!first.value) return '(The file is empty.)'
      const mediaType = detectImageType(first.value)
      if (mediaType) {
        if (size > MAX_IMAGE_BYTES)
          throw new Error(`${path} is an image of ${size} bytes. Make it smaller than 3.5 MB.`)
        const data = Buffer.concat([first.value, ...(await rest(reader))]).toString('base64')
        return [{ type: 'image', mediaType, data }]
      }
      if (first.value.includes(0)) throw new Error(`${path} is a binary file of ${size} bytes.`)
      return await readLines(first.value, reader, Math.max(offset, 1), limit)
    } finally {
      await reader.cancel()
    }
  },
})

async function rest(reader: Reader): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = []
  for (let step = await reader.read(); step.value; step = await reader.read()) chunks.push(step.value)
  return chunks
}

/** Stops reading when it has enough, and holds only the lines that it returns. */
async function readLines(first: Uint8Array, reader: Reader, offset: number, limit: number): Promise<string> {
  const decoder = new TextDecoder()
  const lines: string[] = []
  let number = 0
  let chars = 0
  let line = ''
  let why = ''
  /** False when no more is needed. */
  const take = (text: string): boolean => {
    number += 1
    if (number < offset) return true
    if (lines.length >= limit) why = `Lines from ${number} on are not shown.`
    else if (chars > MAX_OUTPUT_CHARS)
      why = `Cut at ${MAX_OUTPUT_CHARS} characters: lines from ${number} on are not shown.`
    if (why) return false
    const shown = text.replace(/\r$/, '')
    lines.push(shown.length > MAX_LINE_CHARS ? `${shown.slice(0, MAX_LINE_CHARS)}… [line cut]` : shown)
    chars += Math.min(shown.length, MAX_LINE_CHARS) + 8
    return true
  }
  for (let chunk: Uint8Array | undefined = first; chunk && !why; ) {
    const pieces = decoder.decode(chunk, { stream: true }).split('\n')
    const last = pieces.pop() ?? ''
    for (const piece of pieces) {
      if (!take(line + piece)) break
      line = ''
    }
    // An endless line is kept only as far as it may be shown.
    line = (line + last).slice(0, MAX_LINE_CHARS + 1)
    chunk = (await reader.read()).value
  }
  if (line !== '' && !why) take(line)
  if (lines.length === 0) return `(The file has only ${number} lines.)`
  return [numbered(lines, offset), ...(why ? [`[${why} Use offset and limit.]`] : [])].join('\n')
}
