import { lchown, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../disk/lasting-files.ts'
import { isIsolation } from '../../model/isolation.ts'
import { type ProbeResult, probeOutcomes, type SelftestedBackend, type SelftestReport } from '../../model/selftest.ts'
import { type JsonObject, objectOf, objectsOf, parseJson } from '../../read/json.ts'

const NAME = 'selftest.json'
const MODE = 0o600

/**
 * Keeps the last result of `threadbox selftest` in a server's data directory, for this server: the file is of whoever owns the directory.
 * After any crash it is there as it was or as it is now.
 */
export async function keepSelftest(dataDirectory: string, report: SelftestReport): Promise<void> {
  const path = join(dataDirectory, NAME)
  replaceFile(path, `${JSON.stringify(report)}\n`, MODE)
  const { uid, gid } = await stat(dataDirectory)
  // A link that its owner put there meanwhile is not followed.
  if (process.getuid?.() === 0) await lchown(path, uid, gid)
}

/** The last result that is kept. Undefined when there is none, or none that this version can read. */
export async function findSelftest(dataDirectory: string): Promise<SelftestReport | undefined> {
  const text = await readFile(join(dataDirectory, NAME), 'utf8').catch(() => undefined)
  const report = text === undefined ? undefined : objectOf(parseJson(text))
  if (!report || !hasTexts(report, 'version', 'startedAt') || typeof report.ms !== 'number') return undefined
  if (Number.isNaN(Date.parse(String(report.startedAt)))) return undefined
  return {
    version: String(report.version),
    startedAt: String(report.startedAt),
    ms: report.ms,
    isRoot: report.isRoot === true,
    backends: objectsOf(report.backends).flatMap(each => readBackend(each) ?? []),
  }
}

function readBackend(given: JsonObject): SelftestedBackend | undefined {
  const { backend, runtime, isolation, notReady, failed, ms } = given
  if (typeof backend !== 'string' || typeof ms !== 'number') return undefined
  return {
    ...{ backend, ms },
    ...(typeof runtime === 'string' && { runtime }),
    ...(isIsolation(isolation) && { isolation }),
    ...(typeof notReady === 'string' && { notReady }),
    ...(typeof failed === 'string' && { failed }),
    probes: objectsOf(given.probes).flatMap(each => readProbe(each) ?? []),
  }
}

function readProbe(given: JsonObject): ProbeResult | undefined {
  const { found, ms } = given
  const outcome = probeOutcomes.find(each => each === given.outcome)
  if (!outcome || !hasTexts(given, 'id', 'area', 'tried', 'meaning') || typeof ms !== 'number') return undefined
  return {
    id: String(given.id),
    area: String(given.area),
    tried: String(given.tried),
    meaning: String(given.meaning),
    ...{ outcome, ms },
    found: Array.isArray(found) ? found.filter(each => typeof each === 'string') : [],
  }
}

const hasTexts = (given: JsonObject, ...names: readonly string[]): boolean =>
  names.every(name => typeof given[name] === 'string')
