import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { openAttempt } from './attempt.ts'
import { CallError, syscall } from './syscall.ts'

/** The kinds of things that the other sandbox keeps, for programs that look for them. */
export const peerPlaces = ['/tmp/', '/home/user/', '/dev/shm/'] as const
export const PEER_PORT = 8199
export const PEER_KEY = 0x7b0c

const IPC_CREAT = 0o1000
const FOR_ALL = 0o666
const O_CREAT_RDWR = 0o102
const AF_UNIX = 1
const SOCK_STREAM = 1

/**
 * Keeps things that no other sandbox may reach: files, sockets, shared memory, queues, and its command line, which contains the word.
 * Prints the line `ready` with the names of the things that it could make, and stays until it is killed.
 */
export async function keepAsPeer(say: (line: string) => void): Promise<never> {
  const { peer, secret } = openAttempt(process.env, [], say)
  const made: string[] = []
  const make = (what: string, work: () => unknown) => {
    try {
      work()
      made.push(what)
    } catch (error) {
      if (!(error instanceof CallError) && !(error instanceof Error && 'code' in error)) throw error
    }
  }
  for (const place of peerPlaces) make(place, () => writeFileSync(`${place}${peer}`, secret, { mode: FOR_ALL }))
  make('socket', () => {
    const address = abstractAddress(peer)
    const socket = syscall('socket', AF_UNIX, SOCK_STREAM, 0)
    syscall('bind', socket, address, address.byteLength)
    syscall('listen', socket, 1)
  })
  make('memory', () => syscall('shmget', PEER_KEY, 4096, IPC_CREAT | FOR_ALL))
  make('semaphores', () => syscall('semget', PEER_KEY, 1, IPC_CREAT | FOR_ALL))
  make('messages', () => syscall('msgget', PEER_KEY, IPC_CREAT | FOR_ALL))
  make('queue', () => syscall('mq_open', peer, O_CREAT_RDWR, FOR_ALL, null))
  await new Promise<void>(resolve => createServer().listen(PEER_PORT, '127.0.0.1', resolve))
  say(['ready', ...made, 'port'].join(' '))
  return await new Promise<never>(() => {})
}

/** The address of an abstract socket, which has a name but no file. */
export function abstractAddress(name: string): Buffer {
  const address = Buffer.alloc(3 + Buffer.byteLength(name))
  address.writeUInt16LE(AF_UNIX)
  address.write(name, 3)
  return address
}
