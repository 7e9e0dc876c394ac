import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { didYouMean } from '../../read/closest.ts'
import { readConfig } from '../../start/config.ts'
import { guestExecutable } from '../../start/executable.ts'
import { type Given, UsageError } from '../command-line.ts'
import { createProgress } from '../progress.ts'
import { listenForStop } from '../temporary/stop.ts'
import { benchCapacity } from './capacity/capacity.ts'
import { createFigures } from './figures.ts'
import { isTooBusy, lookAtMachine } from './machine.ts'
import { createReport } from './report.ts'
import { runRounds } from './rounds.ts'
import { type PartName, partNames } from './rows.ts'
import { full, quick } from './sizes.ts'
import { toMarkdown, toTable } from './table.ts'

/** Measures this executable on this machine and prints the figures. Returns the exit code: 1 when a part failed. */
export async function bench(given: Given): Promise<number> {
  if (given.has('json') && given.has('markdown')) throw new UsageError('--json or --markdown: one of them')
  if (given.has('capacity')) return await benchCapacity(given)
  const parts = readParts(given.words)
  const { dataDirectory, backend } = await readConfig(
    ['--data-dir', process.env.THREADBOX_DATA_DIR ?? tmpdir(), ...given.settings],
    process.env,
  )
  const other = given.find('against')
  const executables = [...(other === undefined ? [] : [resolve(other)]), guestExecutable]
  const subjects = executables.map(executable => ({ executable, figures: createFigures() }))
  const versions = await Promise.all(executables.map(readVersion))
  const stop = listenForStop()
  const progress = createProgress()
  const startedAt = new Date()
  try {
    const machine = await lookAtMachine()
    if (isTooBusy(machine)) console.error('threadbox: the machine is busy with other things: do not trust the figures')
    const isQuick = given.has('quick')
    await runRounds({
      ...{ subjects, parts, parent: dataDirectory, signal: stop.signal, progress },
      sizes: isQuick ? quick : full,
      settings: [...given.settings.filter(each => !each.startsWith('--data-dir=')), `--backend=${backend}`],
    })
    progress.end()
    const tooBusy = isTooBusy(machine) || isTooBusy(await lookAtMachine())
    const measured = subjects.map((subject, index) => ({ ...subject, version: versions[index] ?? '' }))
    const report = createReport({ measured, parts, machine, tooBusy, isQuick, startedAt })
    const print = given.has('markdown') ? toMarkdown : toTable
    console.log(given.has('json') ? JSON.stringify(report, null, 2) : print(report))
    return subjects.some(({ figures }) => figures.hasFailed) ? 1 : 0
  } catch (error) {
    const code = stop.exitCode()
    if (code === undefined) throw error
    return code
  } finally {
    progress.end()
    stop.close()
  }
}

/** Returns the named parts, or all when none is named. Throws a UsageError. */
function readParts(words: readonly string[]): readonly PartName[] {
  const isPart = (word: string): word is PartName => partNames.some(name => name === word)
  const [unknown] = words.filter(word => !isPart(word))
  if (unknown !== undefined)
    throw new UsageError(
      `no such part: ${unknown}${didYouMean(unknown, partNames) || '.'} There are: ${partNames.join(', ')}`,
    )
  return words.length === 0 ? partNames : partNames.filter(name => words.includes(name))
}

/** Throws a UsageError when the executable cannot be run. */
async function readVersion(executable: string): Promise<string> {
  try {
    const child = Bun.spawn([executable, 'version'], { stdio: ['ignore', 'pipe', 'ignore'] })
    const printed = (await child.stdout.text()).trim()
    if ((await child.exited) === 0) return printed
  } catch {}
  throw new UsageError(`--against: ${executable} is no threadbox that runs`)
}
