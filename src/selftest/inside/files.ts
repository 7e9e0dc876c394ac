import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import type { Attempt, Programs } from './program.ts'
import { syscall } from './syscall.ts'

const [AT_FDCWD, RENAME_EXCHANGE] = [-100, 2]
/** The programs repeat this often, so that the file operations meet both states many times. The server kills them before the last time. */
const ROUNDS = 50_000_000

/** Swaps a directory and a link to the host's directory, again and again, in the given directory. Says `ready` first. */
function swap({ hostDirectory, words: [place = ''] }: Attempt): void {
  process.chdir(place)
  mkdirSync('swapped')
  for (const name of ['secret', 'target', 'gone']) writeFileSync(`swapped/${name}`, 'mine')
  symlinkSync(hostDirectory, 'link')
  console.log('ready')
  for (let round = 0; round < ROUNDS; round++) {
    syscall('renameat2', AT_FDCWD, 'swapped', AT_FDCWD, 'link', RENAME_EXCHANGE)
  }
}

const LEVELS = 600

/** Makes a tree in the given directory that is deeper than the longest possible path. */
function deepen({ words: [place = ''] }: Attempt): void {
  let directory = syscall('openat', AT_FDCWD, place, 0, 0)
  for (let level = 0; level < LEVELS; level++) {
    syscall('mkdirat', directory, 'directory', 0o755)
    const next = syscall('openat', directory, 'directory', 0, 0)
    syscall('close', directory)
    directory = next
  }
  syscall('close', directory)
}

export const files: Programs = { swap, deepen }
