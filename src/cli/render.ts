import { objectOf } from '../read/json.ts'
import type { Chunk, RunMetadata } from '../stream/chunk.ts'
import { printable } from './printable.ts'

const dim = (text: string) => `\x1b[2m${text}\x1b[22m`
const red = (text: string) => `\x1b[31m${text}\x1b[39m`
const SUMMARY_LENGTH = 100
/** How many lines of a tool's output are logged. */
const LOGGED_LINES = 40

/** Shows a stream's chunks as they come. */
export interface Renderer {
  show(chunk: Chunk): void
}

/** For a terminal: text as it streams, thoughts dimmed, each tool call folded to a line. */
export function terminalRenderer(write: (text: string) => void): Renderer {
  const calls = new Map<string, string>()
  let isLineOpen = false
  const text = (words: string, style = (plain: string) => plain) => {
    write(style(printable(words)))
    isLineOpen = !words.endsWith('\n')
  }
  const line = (words: string) => {
    write(`${isLineOpen ? '\n' : ''}${words}\n`)
    isLineOpen = false
  }
  const fold = (callId: string, outcome: string) => line(`${calls.get(callId) ?? callId} ${outcome}`)

  return {
    show(chunk) {
      if (chunk.type === 'text-delta') text(chunk.delta)
      else if (chunk.type === 'reasoning-delta') text(chunk.delta, dim)
      else if (chunk.type === 'text-end' || chunk.type === 'reasoning-end') isLineOpen && text('\n')
      else if (chunk.type === 'tool-input-available')
        calls.set(chunk.toolCallId, describeCall(chunk.toolName, chunk.input))
      else if (chunk.type === 'tool-output-available') fold(chunk.toolCallId, dim(`→ ${summary(chunk.output)}`))
      else if (chunk.type === 'tool-output-error') fold(chunk.toolCallId, red(`✗ ${oneLine(chunk.errorText)}`))
      else if (chunk.type === 'error') line(red(printable(chunk.errorText)))
      else if (chunk.type === 'data-notice') line(dim(describeNotice(chunk.data)))
      else if (chunk.type === 'abort') line(dim('cancelled'))
      else if (chunk.type === 'message-metadata') line(dim(describeUsage(chunk.messageMetadata)))
    },
  }
}

/** For a pipe: the reply's text. Each tool call and the first lines of its output go to `tools`, errors to stderr. */
export function plainRenderer(
  write: (text: string) => void,
  complain: (text: string) => void,
  tools: (text: string) => void,
): Renderer {
  let isLineOpen = false
  const calls = new Map<string, string>()
  const result = (callId: string, lines: string) => tools(`${calls.get(callId) ?? callId}\n${lines}`)
  return {
    show(chunk) {
      if (chunk.type === 'text-delta') {
        write(chunk.delta)
        isLineOpen = !chunk.delta.endsWith('\n')
      } else if (chunk.type === 'tool-input-available')
        calls.set(chunk.toolCallId, describeCall(chunk.toolName, chunk.input))
      else if (chunk.type === 'tool-output-available') result(chunk.toolCallId, firstLines(textOf(chunk.output)))
      else if (chunk.type === 'tool-output-error') result(chunk.toolCallId, firstLines(`✗ ${chunk.errorText}`))
      else if (chunk.type === 'data-notice') complain(`${describeNotice(chunk.data)}\n`)
      else if (chunk.type === 'error') complain(`${chunk.errorText}\n`)
      else if ((chunk.type === 'text-end' || chunk.type === 'finish') && isLineOpen) {
        write('\n')
        isLineOpen = false
      }
    },
  }
}

/** A notice of the engine, such as that a model call is retried. */
const describeNotice = (data: unknown): string => printable(String(objectOf(data)?.text ?? ''))

/** The tool's name and its main argument: a command, path or pattern. */
export function describeCall(name: string, input: unknown): string {
  const about = Object.values(objectOf(input) ?? {}).find(value => typeof value === 'string') ?? ''
  return `● ${name} ${oneLine(String(about))}`
}

const textOf = (output: unknown): string => (typeof output === 'string' ? output : JSON.stringify(output))

/** Ends each line with a line break; empty for an empty text. */
function firstLines(text: string): string {
  const lines = printable(text).trimEnd().split('\n')
  const more = lines.length - LOGGED_LINES
  const kept = more > 0 ? [...lines.slice(0, LOGGED_LINES), `… ${more} more lines`] : lines
  return kept.join('\n') === '' ? '' : `${kept.join('\n')}\n`
}

function summary(output: unknown): string {
  const text = textOf(output)
  const lines = text.trimEnd().split('\n')
  return lines.length > 1 ? `${oneLine(lines[0] ?? '')} (+${lines.length - 1} lines)` : oneLine(text.trimEnd())
}

function describeUsage({ inputTokens, outputTokens, totalCostUsd, durationMs }: RunMetadata): string {
  const seconds = (durationMs / 1000).toFixed(1)
  const cost = totalCostUsd > 0 ? `, $${totalCostUsd.toFixed(4)}` : ''
  return `${inputTokens} in, ${outputTokens} out${cost}, ${seconds} s`
}

function oneLine(text: string): string {
  const line = text.replace(/\p{Cc}+/gu, ' ').trim()
  return line.length > SUMMARY_LENGTH ? `${line.slice(0, SUMMARY_LENGTH)}…` : line
}
