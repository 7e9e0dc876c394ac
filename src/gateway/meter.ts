import { isObject, type JsonObject, objectsOf, parseJson } from '../read/json.ts'
import type { CallWire } from './routes.ts'
import { readers, type TokenUsage } from './wires.ts'

/** Reads what a call uses from the bytes that pass by. It keeps one event, or one whole answer, and no more. */
export interface Meter {
  push(bytes: Uint8Array): void
  /** How the answer itself says that it ended, so far; undefined: it has not. */
  end(): 'completed' | 'failed' | undefined
  /** What was used: as the provider told, else by the size of the request and of what the model said. */
  usage(): TokenUsage
}

const CHARACTERS_PER_TOKEN = 4
/** An event or answer beyond this is passed on, but not read. */
const MAX_KEPT_CHARACTERS = 32 * 1024 * 1024

/** `estimatedInputTokens`: told in place of a provider that tells none. */
export function createMeter(wire: CallWire, isStream: boolean, estimatedInputTokens: number): Meter {
  const decoder = new TextDecoder()
  const seen: Partial<TokenUsage> = {}
  let kept: string[] = []
  let keptCharacters = 0
  let isDropped = false
  let characters = 0
  let end: 'completed' | 'failed' | undefined

  function read(event: JsonObject): void {
    const sight = readers[wire](event)
    // What a stream tells again is the sum so far; some tell all of it only at the end, some then leave the cache out.
    for (const [name, tokens] of entriesOf(sight.usage)) seen[name] = Math.max(seen[name] ?? 0, tokens)
    characters += sight.characters
    end ??= sight.end
  }

  /** An answer is one object; Gemini streams a list of them to who does not ask for events. */
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
    // What was not read was still said.
    if (isDropped) characters += keptCharacters
    keptCharacters = 0
    isDropped = false
    return text
  }

  /** All four wires have an event's data on one line. */
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
      // A last line may lack its end; a line that was cut is no JSON, and is not read.
      if (isStream) takeLine()
      else if (end === undefined && !isDropped) readWhole(kept.join(''))
      return end
    },
    usage() {
      const input = seen.inputTokens ?? estimatedInputTokens
      const said = Math.ceil((characters + (isStream ? 0 : keptIfUnread())) / CHARACTERS_PER_TOKEN)
      // The first event of Anthropic's streams tells one output token: what was said since counts until the last tells all.
      const output = end === 'completed' ? (seen.outputTokens ?? said) : Math.max(seen.outputTokens ?? 0, said)
      const cacheReadTokens = Math.min(seen.cacheReadTokens ?? 0, input)
      const cacheWriteTokens = Math.min(seen.cacheWriteTokens ?? 0, input - cacheReadTokens)
      return { inputTokens: input, outputTokens: output, cacheReadTokens, cacheWriteTokens }
    },
  }

  function keptIfUnread(): number {
    return seen.outputTokens === undefined ? keptCharacters : 0
  }
}

/** Tokens of a request by its size. What looks like a file in base64 counts as one image. */
export function estimateTokens(body: string): number {
  let characters = 0
  let images = 0
  let run = 0
  // By hand, and not by a pattern: a body made for it would have one look at each character a thousand times.
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

const entriesOf = (usage: Partial<TokenUsage> = {}) => Object.entries(usage) as [keyof TokenUsage, number][]
