import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg, release, totalmem } from 'node:os'

/** The machine that measures, and how busy it is with other things. */
export interface Machine {
  cores: number
  processor: string
  memoryMb: number
  kernel: string
  /** The load average of the last minute. */
  load: number
  /** The share of all cores that other programs use, from 0 to 1. */
  busy: number
}

/** A larger share makes figures doubtful. */
const BUSY = 0.15
const LOOK_MS = 500

/** Observes the machine for half a second. Call it while nothing is measured. */
export async function lookAtMachine(): Promise<Machine> {
  const before = readTimes()
  await Bun.sleep(LOOK_MS)
  const after = readTimes()
  const passed = after.total - before.total
  return {
    cores: availableParallelism(),
    processor: /^model name\s*: (.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? process.arch,
    memoryMb: Math.round(totalmem() / 1024 ** 2),
    kernel: release(),
    load: Math.round((loadavg()[0] ?? 0) * 100) / 100,
    busy: passed > 0 ? Math.round((1 - (after.idle - before.idle) / passed) * 100) / 100 : 0,
  }
}

export const isTooBusy = ({ busy }: Machine): boolean => busy > BUSY

function readTimes(): { total: number; idle: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1)
  // The columns are: user nice system idle iowait irq softirq steal.
  const times = line.split(/\s+/).slice(1, 9).map(Number)
  return { total: times.reduce((sum, each) => sum + each, 0), idle: (times[3] ?? 0) + (times[4] ?? 0) }
}
