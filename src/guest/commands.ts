import { closeSync, existsSync, statSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { type Call, type Lane, lanes } from './call.ts'
import { type Libc, RLIMIT_NPROC } from './libc.ts'
import { proxyVariables } from './proxy-variables.ts'
import type { Reaper } from './reaper.ts'
import { GuestError, type KillMessage, type SpawnRequest } from './requests.ts'
import { signal, type Trees } from './tree.ts'

export interface GuestSystem {
  libc: Libc
  trees: Trees
  reaper: Reaper
  /** How many processes commands may have. The guest itself has some to spare: it ends when it cannot make a thread. */
  maxProcesses: bigint | undefined
}

const HOME = '/home/user'

const baseEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME,
  USER: 'root',
  LOGNAME: 'root',
  LANG: 'C.UTF-8',
  ...proxyVariables,
}

/** Waits this long for a full pipe to be read before it tries again. */
const FULL_PIPE_POLL_MS = 1

/**
 * Runs one command for a call: pid as the reply, output in the lanes as it comes, exit code as the result. The call is
 * closed when the command has ended and what it had printed is sent; what it left in the background keeps its pipes.
 * Throws a GuestError when it cannot be started.
 */
export async function runCommand(call: Call, request: SpawnRequest, system: GuestSystem): Promise<void> {
  const { libc, trees, reaper, maxProcesses } = system
  const cwd = request.cwd ?? (existsSync(HOME) ? HOME : '/')
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw new GuestError('invalid_request', `cwd: no such directory: ${cwd}`)
  }
  const mark = trees.mark()
  const stdin = request.stdin ? libc.pipe('write') : undefined
  const stdout = libc.pipe('read')
  const stderr = libc.pipe('read')
  const theirs = [stdin?.readEnd, stdout.writeEnd, stderr.writeEnd]
  const ours = [stdin?.writeEnd, stdout.readEnd, stderr.readEnd]

  let child: Bun.Subprocess
  try {
    const start = () =>
      Bun.spawn(argumentsOf(request), {
        cwd,
        env: { ...baseEnvironment, PWD: cwd, ...request.env },
        stdio: [stdin?.readEnd ?? 'ignore', stdout.writeEnd, stderr.writeEnd],
        detached: true,
      })
    child = maxProcesses === undefined ? start() : libc.withSoftLimit(RLIMIT_NPROC, maxProcesses, start)
  } catch (error) {
    closeAll(ours)
    const { code = '', message } = error as NodeJS.ErrnoException
    const isFull = code === 'EAGAIN' || code === 'ENOMEM'
    throw new GuestError(
      isFull ? 'sandbox_unavailable' : 'invalid_request',
      `The command could not be started: ${message}`,
    )
  } finally {
    closeAll(theirs)
  }
  reaper.adopt(child.pid)

  let killing: Promise<void> | undefined
  call.onControl = message => {
    const name = (message as KillMessage).signal ?? 'SIGKILL'
    if (name === 'SIGKILL') killing ??= trees.kill(mark)
    else signal(-child.pid, name)
  }
  void call.result.catch(() => {
    // The server that asked is gone: what it ran in the foreground goes with it.
    if (child.exitCode === null && child.signalCode === null) void trees.kill(mark)
  })
  call.answer({ pid: child.pid })
  if (stdin) void feed(call, stdin.writeEnd)
  const pumps = [pump(call, lanes.down, stdout.readEnd, libc), pump(call, lanes.error, stderr.readEnd, libc)]

  await child.exited
  reaper.release(child.pid)
  await Promise.all(pumps.map(each => each.drained()))
  await killing
  call.close(exitOf(child))
}

function argumentsOf({ argv, shell }: SpawnRequest): string[] {
  return argv ?? [existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh', '-c', shell ?? '']
}

function exitOf({ exitCode, signalCode }: Bun.Subprocess): { exitCode: number; signal?: string } {
  if (!signalCode) return { exitCode: exitCode ?? 0 }
  const number = Object.entries(constants.signals).find(([name]) => name === signalCode)?.[1] ?? 0
  return { exitCode: 128 + number, signal: String(signalCode) }
}

/** Sends what comes out of a pipe until every holder has closed it. Once the command is drained, the rest is dropped. */
function pump(call: Call, lane: Lane, fd: number, libc: Libc): { drained(): Promise<void> } {
  const reader = Bun.file(fd).stream().getReader()
  let isOpen = true
  let isReading = false
  let moved = Promise.withResolvers<void>()
  const move = (reading: boolean) => {
    isReading = reading
    moved.resolve()
    moved = Promise.withResolvers<void>()
  }
  const forward = async () => {
    for (;;) {
      move(true)
      const { value, done } = await reader.read()
      move(false)
      if (done) return
      await call.send(lane, value)
    }
  }
  void forward()
    .catch(() => {})
    .finally(() => {
      isOpen = false
      closeSync(fd)
      move(false)
    })

  return {
    async drained() {
      // What is in the pipe now was printed by the command. A process that it left behind may hold the pipe for ever.
      await nextTurn()
      while (isOpen && !call.isOver && !(isReading && libc.pendingBytes(fd) === 0)) await moved.promise
    },
  }
}

const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Writes what the caller sends to a pipe. Ends when the caller or the reader does. */
async function feed(call: Call, fd: number): Promise<void> {
  try {
    for (let chunk = await call.read(lanes.up); chunk; chunk = await call.read(lanes.up)) {
      for (let offset = 0; offset < chunk.byteLength; ) {
        const written = writeSome(fd, chunk.subarray(offset))
        offset += written
        if (written === 0) await Bun.sleep(FULL_PIPE_POLL_MS)
      }
    }
  } catch {
    // Nobody reads any more, or the channel is gone.
    call.discard(lanes.up)
  } finally {
    closeSync(fd)
  }
}

function writeSome(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0
    throw error
  }
}

function closeAll(fds: readonly (number | undefined)[]): void {
  for (const fd of fds) if (fd !== undefined) closeSync(fd)
}
