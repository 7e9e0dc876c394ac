import { createLimit } from '../async/limit.ts'
import { wordsOf } from '../errors.ts'
import type { ProbeResult } from '../model/selftest.ts'
import { areaOf, type Probe } from './probe.ts'
import type { Subject } from './subject.ts'

const WITHIN_MS = 30_000
/** More programs at once would wait for each other on a small machine. */
const AT_ONCE = 4

/**
 * Runs probes on a subject: several at once, then one after the other those that run alone. Returns the results in the order of the
 * probes. Rejects with the reason of `subject.signal`, once nothing runs any more.
 */
export async function runProbes(
  subject: Subject,
  probes: readonly Probe[],
  onResult: (result: ProbeResult) => void = () => {},
): Promise<ProbeResult[]> {
  const results = new Map<Probe, ProbeResult>()
  const runOne = async (probe: Probe) => {
    if (subject.signal.aborted) return
    const result = await runProbe(subject, probe)
    if (subject.signal.aborted) return
    results.set(probe, result)
    onResult(result)
  }
  const limit = createLimit(AT_ONCE)
  await Promise.all(probes.filter(each => !each.isAlone).map(each => limit(() => runOne(each))))
  for (const each of probes.filter(each => each.isAlone)) await runOne(each)
  subject.signal.throwIfAborted()
  return probes.flatMap(each => results.get(each) ?? [])
}

/** Runs one probe and never rejects: a probe that could not try has a result too. */
export async function runProbe(subject: Subject, probe: Probe): Promise<ProbeResult> {
  const { id, tried, meaning, withinMs = WITHIN_MS } = probe
  const about = { id, area: areaOf(probe), tried, meaning }
  const begunAtMs = performance.now()
  const end = (outcome: ProbeResult['outcome'], found: readonly string[]): ProbeResult => ({
    ...about,
    ...{ outcome, found },
    ms: Math.round(performance.now() - begunAtMs),
  })
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error(`it did not end within ${withinMs / 1000} seconds`)), withinMs)
  const signal = AbortSignal.any([subject.signal, late.signal])
  try {
    const excuse = probe.excuse?.(subject)
    if (excuse !== undefined) return end('excused', [excuse])
    const found = await beforeAbort(probe.run({ ...subject, signal }), signal)
    return end(found.length === 0 ? 'held' : 'leaked', found)
  } catch (error) {
    return end('untried', [wordsOf(error)])
  } finally {
    clearTimeout(timer)
  }
}

/** Rejects when the signal aborts, also when a probe ignores its signal: the removal of its sandbox ends it. */
async function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    if (signal.aborted) abort()
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
    aborted.promise.catch(() => {})
    work.catch(() => {})
  }
}
