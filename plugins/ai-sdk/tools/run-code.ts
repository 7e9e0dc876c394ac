import { z } from 'zod'
import { ApiError } from '../../../src/errors.ts'
import type { CodeResult } from '../../../src/plugin-api/index.ts'
import { MAX_IMAGE_BYTES } from './image.ts'
import { cutMiddle, type OutputPart } from './output.ts'
import { defineTool } from './tool.ts'

const DEFAULT_TIMEOUT_MS = 120_000
const MAX_TIMEOUT_MS = 600_000
/** The most images of one cell: providers limit the number in a request. */
const MAX_IMAGES = 8

/** Offered where the sandbox has an interpreter of code cells. */
export const runCode = defineTool({
  name: 'RunCode',
  description: `Runs a code cell in the sandbox, as in a notebook, and gives what it prints, the value of its last expression, and its charts as images.
Cells of one language share their variables and imports. A cell is stopped after "timeout" milliseconds (120000 unless given), and the variables are lost then. For other commands use Bash.`,
  input: z.object({
    code: z.string().min(1).describe('The code of the cell'),
    language: z
      .enum(['python', 'javascript', 'typescript', 'r', 'java', 'bash'])
      .optional()
      .describe('Python unless given'),
    timeout: z.coerce.number().min(1).max(MAX_TIMEOUT_MS).optional().describe('In milliseconds, at most 600000'),
  }),
  runsAlone: true,
  async run({ code, language, timeout = DEFAULT_TIMEOUT_MS }, { environment, cwd, env, signal }) {
    if (!environment.code) throw new Error('This sandbox has no code interpreter.')
    const options = { cwd, env, signal, timeoutMs: timeout, ...(language !== undefined && { language }) }
    const result = await environment.code.run(code, options).catch(error => {
      throw error instanceof ApiError ? new Error(error.message) : error
    })
    const text = toText(result)
    if (result.error) throw new Error(text)
    const images = result.results
      .flatMap(each => each.images)
      .filter(({ data }) => data.length * 0.75 <= MAX_IMAGE_BYTES)
    if (images.length === 0) return text || '(no output)'
    const shown = images.slice(0, MAX_IMAGES).map((image): OutputPart => ({ type: 'image', ...image }))
    return [...(text ? [{ type: 'text' as const, text }] : []), ...shown]
  },
})

const toText = ({ stdout, stderr, results, error }: CodeResult): string =>
  cutMiddle(
    [
      stdout,
      stderr,
      ...results.map(({ text = '' }) => text),
      error ? `${error.name}: ${error.value}\n${error.traceback}` : '',
    ]
      .map(part => part.trimEnd())
      .filter(Boolean)
      .join('\n'),
  )
