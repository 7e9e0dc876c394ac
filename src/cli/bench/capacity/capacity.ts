import { tmpdir } from 'node:os'
import { version } from '../../../../package.json'
import { readConfig } from '../../../start/config.ts'
import { guestExecutable } from '../../../start/executable.ts'
import { type Given, UsageError } from '../../command-line.ts'
import { createProgress } from '../../progress.ts'
import { listenForStop } from '../../temporary/stop.ts'
import { isTooBusy, lookAtMachine } from '../machine.ts'
import { measure } from './measure.ts'
import { createCapacityReport } from './report.ts'
import { lookAtRoom } from './room.ts'
import { full, quick } from './sizes.ts'
import { toCapacityMarkdown, toCapacityTable } from './table.ts'

/** Measures how much this machine can hold and prints it. Returns the exit code: 1 when a measurement failed. */
export async function benchCapacity(given: Given): Promise<number> {
  if (given.words.length > 0 || given.has('against'))
    throw new UsageError('--capacity measures this executable alone: it goes with no part and no --against')
  const { dataDirectory: parent, backend } = await readConfig(
    ['--data-dir', process.env.THREADBOX_DATA_DIR ?? tmpdir(), ...given.settings],
    process.env,
  )
  const stop = listenForStop()
  const progress = createProgress()
  const startedAt = new Date()
  const isQuick = given.has('quick')
  try {
    const machine = await lookAtMachine()
    if (isTooBusy(machine)) console.error('threadbox: the machine is busy with other things: do not trust the figures')
    const room = lookAtRoom(parent)
    const outcome = await measure({
      ...{ executable: guestExecutable, parent, signal: stop.signal, progress, sizes: isQuick ? quick : full },
      settings: [...given.settings.filter(each => !each.startsWith('--data-dir=')), `--backend=${backend}`],
    })
    progress.end()
    const tooBusy = isTooBusy(machine) || isTooBusy(await lookAtMachine())
    const about = { executable: guestExecutable, version, quick: isQuick, machine, room, tooBusy, startedAt }
    const report = createCapacityReport({ ...about, outcome })
    const print = given.has('markdown') ? toCapacityMarkdown : toCapacityTable
    console.log(given.has('json') ? JSON.stringify(report, null, 2) : print(report))
    return outcome.hasFailed ? 1 : 0
  } catch (error) {
    const code = stop.exitCode()
    if (code === undefined) throw error
    return code
  } finally {
    progress.end()
    stop.close()
  }
}
