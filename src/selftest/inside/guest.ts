import { ptr } from 'bun:ffi'
import {
  closeSync,
  constants,
  linkSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  renameSync,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { abstractAddress } from './peer.ts'
import type { Attempt, Programs } from './program.ts'
import { CallError, syscall } from './syscall.ts'

const PTRACE_SEIZE = 0x4206
const CODE_ADDRESS = 0x40_0000n
const GUEST_DIRECTORY = '/dev/.threadbox'
const AF_UNIX = 1
const SOCK_STREAM = 1
const SOL_SOCKET = 1
const SO_RCVTIMEO = 20
const ANSWER_WITHIN_S = 2n
const RESOURCES = 16
const SIGKILL = 9
const SIGSTOP = 19
/** A limit whose soft value is above its hard value: Linux answers EINVAL to a caller who may set it, and changes nothing. */
const impossible = BigUint64Array.of(2n, 1n)

/** Process 1 is threadbox's guest, which starts and kills all other processes inside. */
export const guest: Programs = {
  trace({ refused }) {
    // PTRACE_ATTACH would stop the process. A seize does not, and it ends with the program.
    for (const pid of guestIds()) refused(`a seize of ${pid}`, () => syscall('ptrace', PTRACE_SEIZE, pid, 0, 0))
  },
  memory({ refused }) {
    const here = BigUint64Array.of(BigInt(ptr(Buffer.alloc(64))), 64n)
    const there = BigUint64Array.of(CODE_ADDRESS, 64n)
    // The length is 0, so that nothing is written.
    const nothing = BigUint64Array.of(CODE_ADDRESS, 0n)
    for (const pid of guestIds()) {
      refused(`process_vm_readv of ${pid}`, () => syscall('process_vm_readv', pid, here, 1, there, 1, 0))
      refused(`process_vm_writev of ${pid}`, () => syscall('process_vm_writev', pid, here, 0, nothing, 1, 0))
      refused(`reading the memory of ${pid}`, () => closeSync(openSync(`/proc/${pid}/mem`, 'r')))
      refused(`writing the memory of ${pid}`, () => closeSync(openSync(`/proc/${pid}/mem`, 'r+')))
    }
    refused('process_madvise', () => syscall('process_madvise', -1, here, 0, 0, 0))
  },
  'files-in-proc'({ found }) {
    for (const pid of guestIds()) {
      const own = `/proc/${pid}`
      for (const name of ['maps', 'environ', 'auxv', 'stack', 'syscall', 'exe', 'root', 'cwd', 'fd/0', 'fd/3']) {
        if (isReadable(`${own}/${name}`)) found(`${own}/${name} can be read`)
      }
      for (const name of ['exe', 'cwd', 'root', ...namesIn(`${own}/fd`).map(name => `fd/${name}`)]) {
        if (isLink(`${own}/${name}`)) found(`${own}/${name} can be followed`)
      }
    }
  },
  'settings-in-proc'({ refused }) {
    for (const name of ['oom_score_adj', 'uid_map', 'gid_map', 'setgroups', 'clear_refs', 'coredump_filter', 'comm']) {
      refused(`writing /proc/1/${name}`, () => closeSync(openSync(`/proc/1/${name}`, constants.O_WRONLY)))
    }
  },
  descriptors({ refused }) {
    refused('pidfd_getfd', () => {
      const guest = syscall('pidfd_open', 1, 0)
      try {
        return syscall('pidfd_getfd', guest, 0, 0)
      } finally {
        syscall('close', guest)
      }
    })
    refused('kcmp', () => syscall('kcmp', 1, process.pid, 0, 0, 0))
  },
  inherited({ found }) {
    for (const name of readdirSync('/proc/self/fd').filter(name => Number(name) > 2)) {
      const target = linkOf(`/proc/self/fd/${name}`)
      if (/^socket:|^pipe:/.test(target) || (target.startsWith('/') && !/^\/(?:proc|dev)\//.test(target)))
        found(`descriptor ${name} is ${target}`)
    }
  },
  limits({ refused }) {
    const { resource: mark } = findMark()
    for (const task of ['1', ...namesIn('/proc/1/task')]) {
      for (let resource = 0; resource < RESOURCES; resource++) {
        if (resource === mark) continue
        refused(`limit ${resource} of ${task}`, () => syscall('prlimit64', Number(task), resource, impossible, null))
      }
    }
  },
  'mark-of-guest'({ refused }) {
    const { resource } = findMark()
    for (const task of ['1', ...namesIn('/proc/1/task')]) {
      refused(`the mark of ${task}`, () => syscall('prlimit64', Number(task), resource, impossible, null))
    }
  },
  mark({ refused }) {
    const { resource } = findMark()
    const high = BigInt(resource) | (1n << 32n)
    refused('setrlimit', () => syscall('setrlimit', resource, impossible))
    refused('setrlimit behind a high bit', () => syscall('setrlimit', high, impossible))
    refused('prlimit', () => syscall('prlimit64', 0, resource, impossible, null))
    refused('prlimit by its own id', () => syscall('prlimit64', process.pid, resource, impossible, null))
    refused('prlimit behind a high bit', () => syscall('prlimit64', 0, high, impossible, null))
  },
  /** Changes the mark of process 1 again and again, until it is killed. */
  race() {
    const { resource } = findMark()
    const mark = new BigUint64Array(2)
    console.log('racing')
    for (;;) {
      try {
        syscall('prlimit64', 1, resource, null, mark)
        mark[0] = 5n
        syscall('prlimit64', 1, resource, mark, null)
      } catch (error) {
        if (!(error instanceof CallError)) throw error
      }
    }
  },
  kill() {
    // Linux keeps these two signals from every process 1, also from the host's.
    for (const signal of [SIGSTOP, SIGKILL]) {
      try {
        syscall('kill', 1, signal)
        for (const task of namesIn('/proc/1/task')) syscall('tgkill', 1, Number(task), signal)
      } catch (error) {
        if (!(error instanceof CallError)) throw error
      }
    }
  },
  executable({ refused }) {
    for (const path of [GUEST_DIRECTORY, ...below(GUEST_DIRECTORY)]) {
      refused(`a file made in ${path}`, () => {
        closeSync(openSync(join(path, 'made'), 'wx'))
        unlinkSync(join(path, 'made'))
      })
      refused(`writing ${path}`, () => closeSync(openSync(path, constants.O_WRONLY)))
      refused(`a link to ${path}`, () => linkSync(path, 'linked'))
      // The program renames the file to its own name: where Linux allows that, nothing happens.
      if (path !== GUEST_DIRECTORY) refused(`a rename of ${path}`, () => renameSync(path, path))
    }
  },
  socket(attempt) {
    for (const name of abstractNames()) speak(attempt, name)
  },
  /** Says the ids of the processes that have the word in their command line. */
  find({ found, words: [word = ''] }) {
    for (const pid of namesIn('/proc').filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)) {
      if (contentOf(`/proc/${pid}/cmdline`).includes(word)) found(pid)
    }
  },
  /** Says the ids of the guest's threads. */
  threads({ found }) {
    for (const id of namesIn('/proc/1/task')) found(id)
  },
}

/** In a container, this user's processes join connections to the guest. */
const BRIDGE_USER = '65533'

/** The ids of process 1, of some of its threads, and of the processes that join connections to it. */
function guestIds(): readonly number[] {
  const bridges = namesIn('/proc').filter(
    pid => /^\d+$/.test(pid) && contentOf(`/proc/${pid}/status`).includes(`\nUid:\t${BRIDGE_USER}\t`),
  )
  return [1, ...namesIn('/proc/1/task').slice(1, 3).map(Number), ...bridges.map(Number)]
}

/** Finds the limit that the guest marks processes with: only its value is that high without being unlimited. */
function findMark(): { resource: number } {
  const limits = contentOf('/proc/self/limits').split('\n')
  const isMark = (name: string) =>
    limits.some(line => line.startsWith(name) && !line.slice(name.length).trim().startsWith('unlimited'))
  if (isMark('Max file locks')) return { resource: 10 }
  if (isMark('Max resident set')) return { resource: 5 }
  throw new Error('this process has no mark')
}

/** Reports the socket when it answers a token that is not the guest's. */
function speak({ found }: Attempt, name: string): void {
  const address = abstractAddress(name)
  const answer = Buffer.alloc(1)
  for (const said of [Buffer.alloc(64, 'x'), Buffer.alloc(13), Buffer.from('x')]) {
    const socket = syscall('socket', AF_UNIX, SOCK_STREAM, 0)
    try {
      syscall('setsockopt', socket, SOL_SOCKET, SO_RCVTIMEO, BigInt64Array.of(ANSWER_WITHIN_S, 0n), 16)
      syscall('connect', socket, address, address.byteLength)
      syscall('write', socket, said, said.byteLength)
      if (syscall('read', socket, answer, 1) > 0) found(`the socket @${name} answers`)
    } catch (error) {
      if (!(error instanceof CallError)) throw error
    } finally {
      syscall('close', socket)
    }
  }
}

const abstractNames = (): readonly string[] =>
  contentOf('/proc/net/unix')
    .split('\n')
    .flatMap(line => line.split(' ').at(-1)?.split('@')[1] ?? [])
    .concat('threadbox')

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

const below = (directory: string): readonly string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' }).map(name => join(directory, name))

function isReadable(path: string): boolean {
  return contentOf(path).length > 0
}

function isLink(path: string): boolean {
  return linkOf(path) !== ''
}

/** Returns an empty text when the link may not be followed. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

/** Returns the beginning of the file; an empty text when it may not be read. */
function contentOf(path: string): string {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const bytes = Buffer.alloc(65_536)
      return bytes.toString('latin1', 0, readSync(file, bytes))
    } finally {
      closeSync(file)
    }
  } catch {
    return ''
  }
}
