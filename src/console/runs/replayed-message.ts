import type { UIMessage } from 'ai'
import type { RunEvent } from './use-run-events.ts'

export type Part = UIMessage['parts'][number]

/** The state of a reply after some of its events. */
export interface Replayed {
  parts: readonly Part[]
  /** The error that ended the reply. */
  problem?: string
  isCancelled: boolean
}

type Chunk = Readonly<Record<string, unknown>>

const word = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Builds a message event by event. A part that did not change stays the same object. */
export function createReplay() {
  let parts: Part[] = []
  let problem: string | undefined
  let isCancelled = false
  const places = new Map<string, number>()

  const add = (key: string, part: object) => {
    places.set(key, parts.length)
    parts = [...parts, part as Part]
  }
  const change = (key: string, update: (part: Chunk) => object) => {
    const place = places.get(key)
    const part = place === undefined ? undefined : parts[place]
    if (place === undefined || !part) return
    parts = parts.with(place, { ...part, ...update({ ...part }) } as Part)
  }

  function apply({ chunk }: RunEvent): void {
    const given: Chunk = chunk
    const type = word(given.type)
    const [kind] = /^(?:text|reasoning)(?=-)/.exec(type) ?? []
    if (kind !== undefined) applySpoken(kind, type, given)
    else if (type.startsWith('tool-')) applyTool(type, given)
    else if (type === 'file' || type === 'source-url') add(`part ${parts.length}`, given)
    else if (type === 'error') problem = word(given.errorText)
    else if (type === 'abort') isCancelled = true
  }

  function applySpoken(kind: string, type: string, { id, delta }: Chunk): void {
    const key = `${kind} ${word(id)}`
    if (type.endsWith('-start')) add(key, { type: kind, text: '', state: 'streaming' })
    else if (type.endsWith('-delta')) change(key, ({ text }) => ({ text: word(text) + word(delta) }))
    else change(key, () => ({ state: 'done' }))
  }

  function applyTool(type: string, { toolCallId, toolName, input, output, errorText }: Chunk): void {
    const key = `tool ${word(toolCallId)}`
    if (type === 'tool-input-start')
      add(key, { type: `tool-${word(toolName)}`, toolCallId, state: 'input-streaming', input: undefined })
    else if (type === 'tool-input-available') change(key, () => ({ state: 'input-available', input }))
    else if (type === 'tool-output-available') change(key, () => ({ state: 'output-available', output }))
    else if (type === 'tool-output-error') change(key, () => ({ state: 'output-error', errorText: word(errorText) }))
    else if (type === 'tool-output-denied') change(key, () => ({ state: 'output-denied' }))
  }

  return {
    apply,
    get now(): Replayed {
      return { parts, isCancelled, ...(problem !== undefined && { problem }) }
    },
  }
}
