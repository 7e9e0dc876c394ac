import { messageOf } from '../../../src/errors.ts'
import type { EngineEvent } from '../../../src/plugin-api/index.ts'
import { MAX_OUTPUT_TOKENS, type Model } from '../model/model.ts'
import { type Entry, totalTokens } from './entries.ts'
import { shortenOutputs } from './shorten.ts'
import { summarise } from './summarise.ts'
import { lastRequest, SUMMARY_TOOL, summaryMessage } from './summary.ts'

/** How full the window may get, and how full it is after a summary. The rest is for what the estimate misses. */
const FULL = 0.8
const AFTER_SHORTENING = 0.6
const KEPT_BY_SUMMARY = 0.3

export interface Window {
  model: Model
  /** What the system prompt and the tools take. */
  fixedTokens: number
  signal: AbortSignal
}

/**
 * The entries, within the model's window: as they are, or with the outputs of old tool calls shortened, or with the oldest
 * in a summary, which is told and lies in the thread.
 */
export async function* compact(entries: readonly Entry[], window: Window): AsyncGenerator<EngineEvent, Entry[]> {
  const { model, fixedTokens, signal } = window
  const reserved = fixedTokens + Math.min(MAX_OUTPUT_TOKENS, model.contextTokens / 4)
  const room = Math.max(model.contextTokens - reserved, model.contextTokens / 8)
  if (totalTokens(entries) <= room * FULL) return [...entries]
  const shorter = shortenOutputs(entries, room * AFTER_SHORTENING, room * KEPT_BY_SUMMARY)
  if (totalTokens(shorter) <= room * AFTER_SHORTENING) {
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
  const begunWith = (summary: string): Entry[] => [{ message: summaryMessage(summary), key: through }, ...kept]
  try {
    const summary = withRequest(await summarise(covered, { model, room, signal }))
    yield { type: 'tool-result', callId, output: summary }
    return begunWith(summary)
  } catch (error) {
    const problem = `The summary failed: ${messageOf(error)}`
    if (!signal.aborted) yield { type: 'tool-result', callId, output: null, error: problem }
    // Without one the oldest part is lost to the model; the thread still has it.
    return begunWith(withRequest('(The older part could not be summarised.)'))
  }
}

/** Where the part that is kept begins: no larger than `keptTokens`, and never between a call and its result. */
function cutPoint(entries: readonly Entry[], keptTokens: number): number {
  let kept = 0
  let cut = entries.length
  for (let index = entries.length - 1; index > 0; index--) {
    const entry = entries[index]
    if (!entry) break
    kept += totalTokens([entry])
    if (kept > keptTokens && cut < entries.length) break
    // An image that follows a tool's result has the result's key.
    if (entry.message.role !== 'tool' && entry.key !== entries[index - 1]?.key) cut = index
    if (kept > keptTokens) break
  }
  return cut
}
