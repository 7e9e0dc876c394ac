import { closeSync, existsSync } from 'node:fs'
import { constants } from 'node:os'
import { excerpt } from '../../bounds.ts'
import { type Descriptor, ownDescriptor } from '../../descriptor.ts'
import type { ProcessExit, TerminalSize } from '../../plugin-api/index.ts'
import { type Call, lanes } from '../wire/call.ts'
import { proxyVariables } from '../wire/proxy-variables.ts'
import { type CommandRequest, type ControlMessage, GuestError, type SpawnRequest } from '../wire/requests.ts'
import { type Libc, RLIMIT_NPROC } from './libc.ts'
import type { OwnLimits } from './own-limits.ts'
import { createInput, type Input, pump } from './pipes.ts'
import { signal, type Trees } from './process-tree.ts'
import type { Reaper } from './reaper.ts'
import { look, startRefused } from './start-refused.ts'
import { openTerminal } from './terminal.ts'

export interface GuestSystem {
  libc: Libc
  limits: OwnLimits
  trees: Trees
  reaper: Reaper
  /** How many processes commands may have. The guest itself has some to spare: it ends when it cannot make a thread. */
  maxProcesses: bigint | undefined
  /** The variables that the sandbox's image brings. */
  ownVariables: Readonly<Record<string, string>>
}

/** Where a command's output goes. */
export interface Sink {
  /** Waited for before more is read. */
  take(stream: 'stdout' | 'stderr', bytes: Uint8Array): void | Promise<void>
  /** True once nobody wants the output any more: what is still to come is dropped. */
  isGone(): boolean
}

/** A command that was started, and what it left in the background. */
export interface Command {
  readonly pid: number
  /** Absent when it was started without. */
  readonly input?: Input
  /** Resolves when the command has ended and what it had printed was taken. */
  readonly exited: Promise<ProcessExit>
  readonly isRunning: boolean
  /** SIGKILL to the whole tree; others to the command's group. */
  signal(name: NodeJS.Signals): void
  /** Resolves when nothing of the tree is alive. */
  killTree(): Promise<void>
  /** Does nothing without a terminal. */
  resize(size: TerminalSize): void
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

const TERMINAL_SETTLES_MS = 10

/**
 * Runs one command for a call: pid as the reply, output in the lanes as it comes, exit code as the result. The call is
 * closed when the command has ended and what it had printed is sent; what it left in the background keeps its pipes.
 * Throws a GuestError when it cannot be started.
 */
export async function serveSpawn(call: Call, request: SpawnRequest, system: GuestSystem): Promise<void> {
  const isGone = () => call.isOver
  const laneOf = { stdout: lanes.down, stderr: lanes.error }
  const command = startCommand(request, system, { take: (stream, bytes) => call.send(laneOf[stream], bytes), isGone })
  call.onControl = message => {
    const { signal, resize } = message as ControlMessage
    if (resize) command.resize(resize)
    else command.signal(signal ?? 'SIGKILL')
  }
  void call.result.catch(() => {
    // The server that asked is gone: what it ran in the foreground goes with it.
    if (command.isRunning) void command.killTree()
  })
  call.answer({ pid: command.pid })
  if (command.input) void feed(call, command.input)
  call.close(await command.exited)
}

/** Starts a command under a mark of its own. Throws a GuestError when that is not possible. */
export function startCommand(request: CommandRequest, system: GuestSystem, sink: Sink): Command {
  const { libc, limits, trees, reaper, maxProcesses, ownVariables } = system
  const { pty } = request
  const cwd = request.cwd ?? (existsSync(HOME) ? HOME : '/')
  if (!look(cwd)?.isDirectory()) {
    const what = existsSync(cwd) ? 'not a directory' : 'no such directory'
    throw new GuestError('invalid_request', `cwd: ${what}: ${excerpt(cwd)}`)
  }
  const ends = openEnds(request, system)
  const mark = trees.mark()
  let child: Bun.Subprocess
  try {
    const start = () =>
      Bun.spawn(argumentsOf(request), {
        cwd,
        env: { ...baseEnvironment, ...ownVariables, PWD: cwd, ...(pty && { TERM: 'xterm-256color' }), ...request.env },
        stdio: ends.theirs,
        detached: true,
      })
    child = maxProcesses === undefined ? start() : libc.withSoftLimit(RLIMIT_NPROC, maxProcesses, start)
    trees.confirm(child.pid, mark)
  } catch (error) {
    for (const each of ends.ours) each.close()
    limits.assertKept()
    throw startRefused(error, { program: argumentsOf(request)[0] ?? '', cwd, maxProcesses })
  } finally {
    for (const fd of new Set(ends.theirs)) if (typeof fd === 'number') closeSync(fd)
  }
  reaper.adopt(child.pid)

  const options = { isGone: sink.isGone, settleMs: pty ? TERMINAL_SETTLES_MS : 0 }
  const pumps = (['stdout', 'stderr'] as const).map(stream => {
    const from = ends[stream]
    return from && pump(from, libc, bytes => sink.take(stream, bytes), options)
  })
  let killing: Promise<void> | undefined
  const killTree = () => (killing ??= trees.kill(mark).finally(() => (killing = undefined)))
  const ended = async () => {
    await child.exited
    reaper.release(child.pid)
    await Promise.all(pumps.map(each => each?.drained()))
    await killing
    return exitOf(child)
  }
  const isRunning = () => child.exitCode === null && child.signalCode === null

  return {
    pid: child.pid,
    ...(ends.input && { input: ends.input }),
    exited: ended(),
    get isRunning() {
      return isRunning()
    },
    signal(name) {
      if (name === 'SIGKILL') void killTree()
      else signal(-child.pid, name)
    },
    killTree,
    resize(size) {
      if (pty && ends.stdout.isOpen) libc.resizeTerminal(ends.stdout.number, size)
    },
  }
}

function openEnds({ pty, stdin }: CommandRequest, { libc, limits }: GuestSystem): Ends {
  try {
    return pty ? terminalEnds(libc, pty) : pipeEnds(libc, stdin)
  } catch (error) {
    limits.assertKept()
    throw error
  }
}

interface Ends {
  theirs: ['ignore' | number, number, number, ...Bun.BunFile[]]
  ours: Descriptor[]
  input?: Input
  stdout: Descriptor
  stderr?: Descriptor
}

function pipeEnds(libc: Libc, hasInput: boolean): Ends {
  const pipes = [libc.pipe('read'), libc.pipe('read')] as const
  const [stdout, stderr] = [ownDescriptor(pipes[0].readEnd), ownDescriptor(pipes[1].readEnd)]
  const outputs = { stdout, stderr }
  if (!hasInput) {
    return { theirs: ['ignore', pipes[0].writeEnd, pipes[1].writeEnd], ours: [stdout, stderr], ...outputs }
  }
  const { readEnd, writeEnd } = libc.pipe('write')
  const stdin = ownDescriptor(writeEnd)
  return {
    theirs: [readEnd, pipes[0].writeEnd, pipes[1].writeEnd],
    ours: [stdin, stdout, stderr],
    input: createInput(stdin),
    ...outputs,
  }
}

function terminalEnds(libc: Libc, size: TerminalSize): Ends {
  const { master, slave, path } = openTerminal(libc, size)
  const stdout = ownDescriptor(master)
  return {
    // The fourth is opened by the command itself, in its new session: so it gets the terminal as its own.
    theirs: [slave, slave, slave, Bun.file(path)],
    ours: [stdout],
    input: { write: createInput(stdout).write, end() {} },
    stdout,
  }
}

function argumentsOf({ argv, shell }: CommandRequest): string[] {
  return argv ?? [existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh', '-c', shell ?? '']
}

function exitOf({ exitCode, signalCode }: Bun.Subprocess): ProcessExit {
  if (!signalCode) return { exitCode: exitCode ?? 0 }
  const number = Object.entries(constants.signals).find(([name]) => name === signalCode)?.[1] ?? 0
  return { exitCode: 128 + number, signal: String(signalCode) }
}

/** Writes what the caller sends. Ends when the caller or the reader does; a terminal's keyboard has no end. */
async function feed(call: Call, input: Input): Promise<void> {
  try {
    for (let chunk = await call.read(lanes.up); chunk; chunk = await call.read(lanes.up)) {
      await input.write(chunk, () => call.isOver)
    }
  } catch {
    // Nobody reads any more, or the channel is gone.
    call.discard(lanes.up)
  } finally {
    input.end()
  }
}
