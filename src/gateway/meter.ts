import { isObject, type JsonObject, objectsOf, parseJson } from '../read/json.ts'
import type { CallWire } from './routes.ts'
import { type TokenUsage, usageReaders } from './usage-readers.ts'

/** Reads a call's usage from the bytes that pass through. It keeps one event, or one whole answer, and no more. */
export interface Meter {
  push(bytes: Uint8Array): void
  /** How the answer ended by its own account; undefined while it has not said so. */
  end(): 'completed' | 'failed' | undefined
  /** The usage that the provider reports, else an estimate by the size of the request and of the answer. */
  usage(): TokenUsage
}

const CHARACTERS_PER_TOKEN = 4
/** An event or answer beyond this is passed on, but not read. */
const MAX_KEPT_CHARACTERS = 32 * 1024 * 1024

/** `estimatedInputTokens` counts when the provider reports no input. */
export function createMeter(wire: CallWire, isStream: boolean, estimatedInputTokens: number): Meter {
  const decoder = new TextDecoder()
  const seen: Partial<TokenUsage> = {}
  let kept: string[] = []
  let keptCharacters = 0
  let isDropped = false
  let characters = 0
  let end: 'completed' | 'failed' | undefined

  function read(event: JsonObject): void {
    const observation = usageReaders[wire](event)
    // A later event repeats the sum so far. Some report all only at the end, and some leave the cache out there.
    for (const [name, tokens] of listCounts(observation.usage)) seen[name] = Math.max(seen[name] ?? 0, tokens)
    characters += observation.characters
    end ??= observation.end
  }

  /** Reads an answer that is one object. Without alt=sse, Gemini answers with a JSON array of events. */
  function readWhole(text: string): void {
    const answer = parseJson(text)
    const events = objectsOf(Array.isArray(answer) ? answer : [answer])
    for (const event of events) read(event)
    if (events.length > 0 && Object.keys(seen).length > 0) end ??= 'completed'
  }

  function keep(text: string): void {
    keptCharacters += text.length
    if (keptCharacters > MAX_KEPT_CHARACTERS) {
      isDropped = true
      kept = []
    }
    if (!isDropped) kept.push(text)
  }

  function takeKept(): string {
    const text = kept.join('')
    kept = []
    // Text that was not read still counts by its size.
    if (isDropped) characters += keptCharacters
    keptCharacters = 0
    isDropped = false
    return text
  }

  /** Reads one line: all four wires have an event's data on one. */
  function takeLine(): void {
    const line = takeKept()
    if (!line.startsWith('data:')) return
    const data = line.slice(5).trim()
    const event = parseJson(data)
    if (isObject(event)) read(event)
    else if (data === '[DONE]') end ??= 'completed'
  }

  return {
    push(bytes) {
      const text = decoder.decode(bytes, { stream: true })
      if (!isStream) return keep(text)
      let start = 0
      for (let feed = text.indexOf('\n'); feed >= 0; feed = text.indexOf('\n', start)) {
        keep(text.slice(start, feed))
        takeLine()
        start = feed + 1
      }
      if (start < text.length) keep(text.slice(start))
    },
    end() {
      // The last line may have no line feed. If it was cut it is not JSON, and is ignored.
      if (isStream) takeLine()
      else if (end === undefined && !isDropped) readWhole(kept.join(''))
      return end
    },
    usage() {
      const input = seen.inputTokens ?? estimatedInputTokens
      // A whole answer that was not read counts by its size.
      const unread = isStream || seen.outputTokens !== undefined ? 0 : keptCharacters
      const estimated = Math.ceil((characters + unread) / CHARACTERS_PER_TOKEN)
      // Anthropic's first event counts one output token and the last one all: in between the text's size counts.
      const output =
        end === 'completed' ? (seen.outputTokens ?? estimated) : Math.max(seen.outputTokens ?? 0, estimated)
      const cacheReadTokens = Math.min(seen.cacheReadTokens ?? 0, input)
      const cacheWriteTokens = Math.min(seen.cacheWriteTokens ?? 0, input - cacheReadTokens)
      return { inputTokens: input, outputTokens: output, cacheReadTokens, cacheWriteTokens }
    },
  }
}

/** Estimates a request's tokens by its size. What looks like a file in base64 counts as one image. */
export function estimateTokens(body: string): number {
  let characters = 0
  let images = 0
  let run = 0
  // No pattern: a body made for it would have each character examined a thousand times.
  for (let index = 0; index <= body.length; index++) {
    if (isBase64(body.charCodeAt(index))) {
      run += 1
      continue
    }
    if (run >= MIN_IMAGE_CHARACTERS) images += 1
    else characters += run
    characters += 1
    run = 0
  }
  return Math.ceil(characters / CHARACTERS_PER_TOKEN) + images * TOKENS_PER_IMAGE
}

const isBase64 = (code: number) =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 47 && code <= 57) || code === 43

const MIN_IMAGE_CHARACTERS = 2000
const TOKENS_PER_IMAGE = 1500

const listCounts = (usage: Partial<TokenUsage> = {}) => Object.entries(usage) as [keyof TokenUsage, number][]
