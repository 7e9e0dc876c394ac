import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { version } from '../../../package.json'
import type { Config } from '../../core/config.ts'
import { keepSelftest } from '../../core/server/selftest-file.ts'
import { wordsOf } from '../../errors.ts'
import type { SelftestedBackend, SelftestReport } from '../../model/selftest.ts'
import { didYouMean } from '../../read/closest.ts'
import { areaOf } from '../../selftest/probe.ts'
import { probeAreas, probes } from '../../selftest/probes/all.ts'
import { readConfig } from '../../start/config.ts'
import { loadPlugins } from '../../start/load-plugins.ts'
import { type Given, UsageError } from '../command-line.ts'
import { createProgress, type Progress } from '../progress.ts'
import { listenForStop } from '../temporary/stop.ts'
import { type Chosen, testBackend } from './subjects.ts'
import { toTable } from './table.ts'

const [HELD, LEAKED, UNTRIED] = [0, 1, 3]

/** Settings that say which backend, and those that the selftest of one backend sets itself. */
const ofBackends = ['backend', 'backends', 'docker-runtime', 'data-dir']

/**
 * Tries to get out of sandboxes of this machine's backends, and prints what held. Resolves to the exit code: 1 when something got through,
 * else 3 when something could not be tried. Nothing of it is left.
 */
export async function selftest(given: Given): Promise<number> {
  const area = readArea(given.find('area'))
  const chosenProbes = area === undefined ? probes : probes.filter(each => areaOf(each) === area)
  const config = await readConfig(given.settings, process.env)
  const place = await readConfig(['--data-dir', process.env.THREADBOX_DATA_DIR ?? tmpdir(), ...given.settings], {})
  const subjects = await chooseSubjects(given.words, config)
  await mkdir(place.dataDirectory, { recursive: true })
  const stop = listenForStop()
  const progress = createProgress()
  const begunAtMs = performance.now()
  const startedAt = new Date().toISOString()
  try {
    progress.say('trying to get out of sandboxes')
    const onResult = countResults(progress, subjects.length * chosenProbes.length)
    const backends = await Promise.all(
      subjects.map(chosen =>
        testBackend(chosen, {
          config: { ...config, dataDirectory: place.dataDirectory },
          settings: given.settings.filter(each => !ofBackends.some(name => each.startsWith(`--${name}=`))),
          probes: chosenProbes,
          log: line => {
            if (given.has('verbose')) console.error(`threadbox: ${line}`)
          },
          signal: stop.signal,
          onResult,
        }),
      ),
    )
    progress.end()
    const report: SelftestReport = {
      ...{ version, startedAt },
      ms: Math.round(performance.now() - begunAtMs),
      isRoot: process.getuid?.() === 0,
      ...(area !== undefined && { area }),
      backends,
    }
    console.log(given.has('json') ? JSON.stringify(report, null, 2) : toTable(report))
    if (area === undefined) await keepForServer(config.dataDirectory, report)
    return exitCodeOf(backends, given.words)
  } catch (error) {
    const code = stop.exitCode()
    if (code === undefined) throw error
    return code
  } finally {
    progress.end()
    stop.close()
  }
}

/** Throws a UsageError. */
function readArea(area: string | undefined): string | undefined {
  if (area === undefined || probeAreas.includes(area)) return area
  throw new UsageError(
    `--area: there is no area ${area}${didYouMean(area, probeAreas) || '.'} There are: ${probeAreas.join(', ')}`,
  )
}

/** The backends that were named, else all that may be ready here; docker once for each runtime. Throws a UsageError. */
async function chooseSubjects(words: readonly string[], config: Config): Promise<Chosen[]> {
  const { backends } = await loadPlugins(config)
  for (const each of backends.values()) await each.close()
  const known = [...backends.keys()]
  const unknown = words.find(word => !known.includes(word))
  if (unknown !== undefined)
    throw new UsageError(
      `there is no backend ${unknown}${didYouMean(unknown, known) || '.'} There are: ${known.join(', ')}`,
    )
  const own = [...config.backends, 'nsjail', 'docker', ...(process.env.E2B_API_KEY ? ['e2b'] : [])]
  const names = new Set(words.length > 0 ? words : own.filter(name => known.includes(name)))
  return [...names].flatMap<Chosen>(backend => [
    { backend },
    ...(backend === 'docker' ? config.dockerRuntimes.map(runtime => ({ backend, runtime })) : []),
  ])
}

/** Shows how many probes have ended. */
function countResults(progress: Progress, all: number): () => void {
  let count = 0
  return () => progress.note(`${++count} of ${all}`)
}

/** A server shows the last result of its machine. That it cannot be kept makes no difference to what was found. */
async function keepForServer(dataDirectory: string, report: SelftestReport): Promise<void> {
  if (!existsSync(join(dataDirectory, 'threadbox.db'))) return
  await keepSelftest(dataDirectory, report).catch(error =>
    console.error(`threadbox: the result could not be kept for the server: ${wordsOf(error)}`),
  )
}

/** A backend that is not ready counts when it was named, or when no other is. */
function exitCodeOf(backends: readonly SelftestedBackend[], named: readonly string[]): number {
  const outcomes = backends.flatMap(({ probes }) => probes.map(({ outcome }) => outcome))
  if (outcomes.includes('leaked')) return LEAKED
  const isMissing = (each: SelftestedBackend) => each.notReady !== undefined && named.includes(each.backend)
  const isAnyReady = backends.some(each => each.notReady === undefined)
  const isIncomplete = !isAnyReady || backends.some(each => each.failed !== undefined || isMissing(each))
  return isIncomplete || outcomes.includes('untried') ? UNTRIED : HELD
}
