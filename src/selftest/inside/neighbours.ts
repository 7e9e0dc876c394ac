import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { abstractAddress, PEER_KEY, PEER_PORT, peerPlaces } from './peer.ts'
import type { Attempt, Programs } from './program.ts'
import { AF_UNIX, SOCK_STREAM, talk, withSocket } from './sockets.ts'
import { syscall } from './syscall.ts'

/** These codes mean that nothing has that name or key. */
const nothing = ['ENOENT', 'ECONNREFUSED']

/** File names in these directories contain nothing of one sandbox's own. */
const notWalked = ['/proc', '/sys', '/usr']

/** Reads the usual places where the other sandbox keeps its data, and looks for its word in the name of each visible file. */
function files({ peer, seesNone, found }: Attempt): void {
  for (const place of peerPlaces) {
    for (const root of ['', '/proc/1/root', '/proc/self/root/..']) seesNone(`${root}${place}${peer}`)
  }
  const walk = (directory: string) => {
    for (const entry of list(directory)) {
      const path = join(directory, entry.name)
      if (entry.name.includes(peer)) found(`${path} is a file of the other sandbox`)
      if (entry.isDirectory() && !notWalked.includes(path)) walk(path)
    }
  }
  walk('/')
}

function list(directory: string) {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}

function sockets({ peer, refused }: Attempt): void {
  const address = abstractAddress(peer)
  const connect = () =>
    withSocket([AF_UNIX, SOCK_STREAM, 0], socket => syscall('connect', socket, address, address.byteLength))
  refused('a connection to a socket of the other sandbox', connect, nothing)
}

function ports({ found }: Attempt): void {
  for (const address of ['127.0.0.1', '127.0.0.2', '0.0.0.0']) {
    const { code } = talk(address, PEER_PORT, '')
    if (code === undefined || code === 'EAGAIN') found(`${address} port ${PEER_PORT} of the other sandbox has answered`)
  }
}

/** Looks for the other sandbox's command line, and for a process of it that this one may signal. */
function processes({ peer, found }: Attempt): void {
  for (const pid of peerProcesses(peer)) found(`process ${pid} of the other sandbox is seen`)
}

function peerProcesses(peer: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => pid > 0 && pid !== process.pid && readText(`/proc/${pid}/cmdline`).split('\0').includes(peer))
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Asks whether it may signal the processes of the other sandbox by their ids on this machine. */
function signals({ words, refused, peer }: Attempt): void {
  // The sandbox's own processes have small ids. An id that exists here too says nothing.
  const own = new Set(readdirSync('/proc'))
  const asked = new Set([...words.filter(pid => !own.has(pid)).map(Number), ...peerProcesses(peer)])
  for (const pid of asked) {
    refused(`a signal to process ${pid} of the other sandbox`, () => syscall('kill', pid, 0), ['ESRCH'])
  }
}

const sharedMemory = ({ refused }: Attempt): void =>
  refused('shared memory of the other sandbox', () => syscall('shmget', PEER_KEY, 0, 0), nothing)

const semaphores = ({ refused }: Attempt): void =>
  refused('semaphores of the other sandbox', () => syscall('semget', PEER_KEY, 0, 0), nothing)

const messages = ({ refused }: Attempt): void =>
  refused('a message queue of the other sandbox', () => syscall('msgget', PEER_KEY, 0), nothing)

const queues = ({ refused, peer }: Attempt): void =>
  refused('a POSIX queue of the other sandbox', () => syscall('mq_open', peer, 0, 0, null), nothing)

/** Files and devices that both sandboxes share with this machine, if they share any. */
const shared = ['/', '/etc', '/etc/passwd', '/usr', '/usr/bin', '/usr/bin/env', '/bin/sh', '/usr/lib']
const deviceNodes = ['null', 'zero', 'full', 'random', 'urandom'].map(name => `/dev/${name}`)

const [LOCK_EX, LOCK_NB] = [2, 4]
const [O_NONBLOCK, AT_FDCWD] = [0o4000, -100]
const ALL_EVENTS = 0xfff
const EVENT_HEAD_BYTES = 16

/** The first word is `files`, `devices` or `program`. */
const pathsOf = ({ words: [kind] }: Attempt) => {
  if (kind === 'devices') return deviceNodes
  return kind === 'program' ? guestFiles('/dev/.threadbox') : shared
}

const guestFiles = (directory: string): string[] => list(directory).map(({ name }) => join(directory, name))

/** Locks the files that it can lock. A file that another program has locked cannot be locked. */
function lock(attempt: Attempt): void {
  for (const path of pathsOf(attempt)) {
    const file = openFile(path)
    if (file === undefined) continue
    if (!isLockable(file)) attempt.found(`${path} was locked by another sandbox`)
    syscall('close', file)
  }
}

/** Returns false when another program has locked it. */
function isLockable(file: number): boolean {
  try {
    syscall('flock', file, LOCK_EX | LOCK_NB)
    return true
  } catch (error) {
    return !isCode(error, 'EAGAIN')
  }
}

const isCode = (error: unknown, code: string) => error instanceof Error && 'code' in error && error.code === code

function openFile(path: string): number | undefined {
  try {
    return syscall('openat', AT_FDCWD, path, O_NONBLOCK, 0)
  } catch {
    return undefined
  }
}

/** Opens, reads and lists the files, so that others could notice it. */
function use(attempt: Attempt): void {
  for (const path of pathsOf(attempt)) {
    const file = openFile(path)
    if (file === undefined) continue
    if (statSync(path).isDirectory()) readdirSync(path)
    else if (path !== '/dev/zero' && path !== '/dev/full') syscall('read', file, Buffer.alloc(16), 16)
    syscall('close', file)
  }
}

/** Runs in the other sandbox: locks and watches, says `ready`, and when its stdin ends says what it has noticed. */
async function watch(attempt: Attempt): Promise<void> {
  const paths: string[] = []
  const names = new Map<number, string>()
  const watching = syscall('inotify_init1', O_NONBLOCK)
  for (const path of pathsOf(attempt)) {
    const file = openFile(path)
    if (file === undefined) continue
    if (!isLockable(file)) attempt.found(`${path} was locked by another`)
    paths.push(path)
  }
  // A watch would also see that a file in a watched directory is opened.
  for (const path of paths) names.set(syscall('inotify_add_watch', watching, path, ALL_EVENTS), path)
  console.log('ready')
  await Bun.stdin.text()
  const events = Buffer.alloc(65_536)
  try {
    const length = syscall('read', watching, events, events.byteLength)
    for (let at = 0; at + EVENT_HEAD_BYTES <= length; at += EVENT_HEAD_BYTES + events.readUInt32LE(at + 12)) {
      attempt.found(`a use of ${names.get(events.readInt32LE(at))} was seen by another sandbox`)
    }
  } catch (error) {
    if (!isCode(error, 'EAGAIN')) throw error
  }
}

export const neighbours: Programs = {
  ...{ files, sockets, ports, processes, signals, semaphores, messages, queues, lock, use, watch },
  'shared-memory': sharedMemory,
}
