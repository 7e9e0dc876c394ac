import { closeSync, constants, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Attempt, Programs } from './program.ts'
import { syscall } from './syscall.ts'
import { openThreads } from './threads.ts'

const MIB = 1024 * 1024
const PIECE_MB = 8
const FILES_IN_DIRECTORY = 1000
const RESOURCES = 16
const PRIORITY_OF_PROCESS = 0
const FIRST_IN_FIRST_OUT = 1
const ABOVE_ALL = -20

/** Each program tries to get more than the sandbox may have. Its words say how much. */
export const limits: Programs = {
  memory({ found, words: [megabytes = ''] }) {
    const held: Buffer[] = []
    // The pages are not all zero: the kernel could share one page for all of those.
    for (let mb = 0; mb < Number(megabytes); mb += PIECE_MB) held.push(Buffer.alloc(PIECE_MB * MIB, mb + 1))
    found(`${held.length * PIECE_MB} MB of memory could be had`)
  },
  'shared-memory': attempt => fill(attempt, '/dev/shm', 1),
  disk: attempt => fill(attempt, '/home/user', 6),
  'engine-files'(attempt) {
    const [megabytes = ''] = attempt.words
    for (const path of ['/etc/hosts', '/etc/hostname', '/etc/resolv.conf']) {
      const writtenMb = writeFile(path, Number(megabytes), constants.O_WRONLY)
      if (writtenMb >= Number(megabytes)) attempt.found(`${path} took ${writtenMb} MB`)
    }
  },
  files({ found, words: [count = ''] }) {
    let made = 0
    try {
      for (; made < Number(count); made++) {
        const directory = String(Math.floor(made / FILES_IN_DIRECTORY))
        if (made % FILES_IN_DIRECTORY === 0) mkdirSync(directory)
        writeFileSync(join(directory, String(made)), '')
      }
    } catch (error) {
      if (codeOf(error) === undefined) throw error
    }
    if (made >= Number(count)) found(`${made} files could be made`)
  },
  processes({ found, words: [count = ''] }) {
    const threads = openThreads()
    let made = 0
    while (made < Number(count) && threads.pause()) made++
    if (made === 0) throw new Error('no thread could be made')
    if (made >= Number(count)) found(`${made} threads could be started`)
  },
  /** The program only takes memory. The server measures how much it got. */
  cpu({ words: [ms = ''] }) {
    const end = performance.now() + Number(ms)
    while (performance.now() < end) Math.sqrt(end)
  },
  terminals({ found, words: [count = ''] }) {
    let made = 0
    try {
      for (; made < Number(count); made++) openSync('/dev/ptmx', constants.O_RDWR | constants.O_NOCTTY)
    } catch (error) {
      if (codeOf(error) === undefined) throw error
    }
    if (made >= Number(count)) found(`${made} terminals could be opened`)
  },
  raise({ found, refused }) {
    const own = new BigUint64Array(2)
    for (let resource = 0; resource < RESOURCES; resource++) {
      syscall('prlimit64', 0, resource, null, own)
      const [soft = 0n, hard = 0n] = own
      if (hard === UNLIMITED) continue
      refused(`hard limit ${resource}`, () => {
        syscall('prlimit64', 0, resource, BigUint64Array.of(soft, hard + 1n), null)
        found(`hard limit ${resource} was ${hard}`)
      })
    }
  },
  'oom-score'({ found }) {
    const path = '/proc/self/oom_score_adj'
    const own = readFileSync(path, 'latin1')
    try {
      writeFileSync(path, '-1000')
      found('its processes can be the last that the kernel kills for memory')
      writeFileSync(path, own)
    } catch (error) {
      if (codeOf(error) === undefined) throw error
    }
  },
  priority({ refused }) {
    refused('a priority above all', () => syscall('setpriority', PRIORITY_OF_PROCESS, 0, ABOVE_ALL))
    const priority = Int32Array.of(1)
    refused('real-time scheduling', () => syscall('sched_setscheduler', 0, FIRST_IN_FIRST_OUT, priority))
    const ioRealTime = 1 << 13
    refused("the disk's real-time class", () => syscall('ioprio_set', 1, 0, ioRealTime))
  },
}

const UNLIMITED = 0xffff_ffff_ffff_ffffn

/** Writes several files, so that the limit on one file's size does not stop it. Says so when it could write everything. */
function fill({ found, words: [megabytes = ''] }: Attempt, directory: string, files: number): void {
  let writtenMb = 0
  const each = Math.ceil(Number(megabytes) / files)
  for (let index = 0; index < files; index++) {
    writtenMb += writeFile(join(directory, `filled-${index}`), each, constants.O_WRONLY | constants.O_CREAT)
  }
  if (writtenMb >= Number(megabytes)) found(`${writtenMb} MB could be written to ${directory}`)
  else for (let index = 0; index < files; index++) rmSync(join(directory, `filled-${index}`), { force: true })
}

/** Returns how many megabytes were written before the first refusal. */
function writeFile(path: string, megabytes: number, flags: number): number {
  const piece = Buffer.alloc(MIB, 'x')
  let written = 0
  try {
    const file = openSync(path, flags)
    try {
      for (; written < megabytes; written++) if (writeSync(file, piece) < piece.byteLength) break
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (codeOf(error) === undefined) throw error
  }
  return written
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
