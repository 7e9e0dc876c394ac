import { messageOf } from '../../../src/errors.ts'
import type { EngineEvent } from '../../../src/plugin-api/index.ts'
import { MAX_OUTPUT_TOKENS, type Model } from '../model/model.ts'
import { type ContextEntry, estimateTotalTokens } from './context-entries.ts'
import { shortenOutputs } from './shorten.ts'
import { summarise } from './summarise.ts'
import { lastRequest, SUMMARY_TOOL, summaryMessage } from './summary.ts'

/** Shares of the window: when it counts as full, and how much is left in it afterwards. The rest is for the estimate's error. */
const FULL = 0.8
const AFTER_SHORTENING = 0.6
const KEPT_BY_SUMMARY = 0.3

export interface Window {
  model: Model
  /** The tokens of the system prompt and the tools. */
  fixedTokens: number
  signal: AbortSignal
}

/**
 * Fits the entries into the model's window: as they are, or with the outputs of old tool calls shortened, or with the oldest
 * entries replaced by a summary. The summary is emitted as a tool call, so the thread keeps it.
 */
export async function* compact(
  entries: readonly ContextEntry[],
  window: Window,
): AsyncGenerator<EngineEvent, ContextEntry[]> {
  const { model, fixedTokens, signal } = window
  const reserved = fixedTokens + Math.min(MAX_OUTPUT_TOKENS, model.contextTokens / 4)
  const room = Math.max(model.contextTokens - reserved, model.contextTokens / 8)
  if (estimateTotalTokens(entries) <= room * FULL) return [...entries]
  const shorter = shortenOutputs(entries, room * AFTER_SHORTENING, room * KEPT_BY_SUMMARY)
  if (estimateTotalTokens(shorter) <= room * AFTER_SHORTENING) {
    const text = 'The conversation is long: the model no longer sees all of the old tool outputs.'
    yield { type: 'notice', level: 'info', code: 'outputs_shortened', text }
    return shorter
  }
  const cut = cutPoint(shorter, room * KEPT_BY_SUMMARY)
  const covered = shorter.slice(0, cut)
  const kept = shorter.slice(cut)
  const through = covered.at(-1)?.key
  if (through === undefined) return shorter
  const callId = `compact-${crypto.randomUUID()}`
  const text = 'The conversation is long: its older part is summarised.'
  yield { type: 'notice', level: 'info', code: 'summarising', text }
  yield { type: 'tool-call', callId, name: SUMMARY_TOOL, input: { through } }
  const withRequest = (summary: string) =>
    kept.some(({ message }) => message.role === 'user') ? summary : `${summary}${lastRequest(covered)}`
  const begunWith = (summary: string): ContextEntry[] => [{ message: summaryMessage(summary), key: through }, ...kept]
  try {
    const summary = withRequest(await summarise(covered, { model, room, signal }))
    yield { type: 'tool-result', callId, output: summary }
    return begunWith(summary)
  } catch (error) {
    const problem = `The summary failed: ${messageOf(error)}`
    if (!signal.aborted) yield { type: 'tool-result', callId, output: null, error: problem }
    // Without a summary the model loses the oldest part; the thread still has it.
    return begunWith(withRequest('(The older part could not be summarised.)'))
  }
}

/** The index at which the kept part begins. It has at most `keptTokens`, and never begins between a call and its result. */
function cutPoint(entries: readonly ContextEntry[], keptTokens: number): number {
  let kept = 0
  let cut = entries.length
  for (let index = entries.length - 1; index > 0; index--) {
    const entry = entries[index]
    if (!entry) break
    kept += estimateTotalTokens([entry])
    if (kept > keptTokens && cut < entries.length) break
    // An image that follows a tool's result has the same key as the result.
    if (entry.message.role !== 'tool' && entry.key !== entries[index - 1]?.key) cut = index
    if (kept > keptTokens) break
  }
  return cut
}
