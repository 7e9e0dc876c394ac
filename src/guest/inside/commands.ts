import { closeSync, existsSync } from 'node:fs'
import { type Descriptor, ownDescriptor } from '../../descriptor.ts'
import type { ProcessExit, TerminalSize } from '../../plugin-api/index.ts'
import { type Call, lanes } from '../wire/call.ts'
import type { CommandRequest, ControlMessage, SpawnRequest } from '../wire/requests.ts'
import { type Libc, RLIMIT_NPROC } from './libc.ts'
import { createOffers } from './offers.ts'
import { createOutput, followSoon, type OtherReader } from './output.ts'
import type { OwnLimits } from './own-limits.ts'
import { asUser, findPerson } from './person.ts'
import { createInput, type Input } from './pipes.ts'
import { signal, type Trees } from './process-tree.ts'
import type { Reaper } from './reaper.ts'
import type { Program, StartProgram } from './start-program.ts'
import { startRefused } from './start-refused.ts'
import { openTerminal } from './terminal.ts'
import { HOME, variablesOf } from './variables.ts'

export interface GuestSystem {
  libc: Libc
  limits: OwnLimits
  trees: Trees
  reaper: Reaper
  start: StartProgram
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
  /** Offers a pipe to a server that may read it in place of this process. */
  offer?(stream: 'stdout' | 'stderr', from: Descriptor): OtherReader
}

/** A command that was started, and what it left in the background. */
export interface Command {
  readonly pid: number
  /** Absent when it was started without. */
  readonly input?: Input
  /** Resolves when the command has ended, or has not ended at once, as most do. */
  readonly isUnderWay: Promise<void>
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

const TERMINAL_SETTLES_MS = 10

/**
 * Runs one command for a call: pid as the reply, output in the lanes as it comes, exit code as the result. The call is
 * closed when the command has ended and what it had printed is sent; what it left in the background keeps its pipes. All that a
 * command has which ends at once goes in one write. Throws a GuestError when it cannot be started.
 */
export async function serveSpawn(call: Call, request: SpawnRequest, system: GuestSystem): Promise<void> {
  const isGone = () => call.isOver
  const laneOf = { stdout: lanes.down, stderr: lanes.error }
  const offers = createOffers(call)
  const command = startCommand(request, system, {
    take: (stream, bytes) => call.send(laneOf[stream], bytes),
    isGone,
    ...(request.takesOutputs && { offer: (stream, from) => offers.offer(laneOf[stream], from) }),
  })
  call.onControl = message => {
    const { signal, resize, reads } = message as ControlMessage
    if (reads) offers.answered(reads)
    else if (resize) command.resize(resize)
    else command.signal(signal ?? 'SIGKILL')
  }
  void call.result.catch(() => {
    // The server that asked is gone: what it ran in the foreground goes with it.
    if (command.isRunning) void command.killTree()
  })
  await command.isUnderWay
  call.answer({ pid: command.pid })
  if (command.input) void feed(call, command.input)
  call.close(await command.exited)
}

/** Starts a command under a mark of its own. Throws a GuestError when that is not possible. */
export function startCommand(request: CommandRequest, system: GuestSystem, sink: Sink): Command {
  const { libc, limits, trees, reaper, start, maxProcesses, ownVariables } = system
  const { pty } = request
  const cwd = request.cwd ?? (existsSync(HOME) ? HOME : '/')
  const shell = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh'
  const argv = request.argv ?? [shell, '-c', request.shell ?? '']
  const person = request.user === undefined ? undefined : findPerson(request.user)
  const ends = openEnds(request, system)
  const mark = trees.mark()
  let pid: number
  try {
    const env = variablesOf(request, ownVariables, { cwd, shell, ...(person && { person }) })
    const begin = () => start({ argv: person ? asUser(person, argv, { env, cwd }) : argv, env, cwd, ...ends.theirs })
    pid = maxProcesses === undefined ? begin() : libc.withSoftLimit(RLIMIT_NPROC, maxProcesses, begin)
    trees.confirm(pid, mark)
  } catch (error) {
    for (const each of ends.ours) each.close()
    limits.assertKept()
    throw startRefused(error, { program: argv[0] ?? '', cwd, maxProcesses })
  } finally {
    const { stdin, stdout, stderr } = ends.theirs
    for (const fd of new Set([stdin, stdout, stderr])) if (fd !== undefined) closeSync(fd)
  }
  const exit = reaper.ended(pid)

  // While somebody talks to the command, little comes at a time.
  const offer = ends.input ? undefined : sink.offer
  const options = { isGone: sink.isGone, settleMs: pty ? TERMINAL_SETTLES_MS : 0 }
  const outputs = (['stdout', 'stderr'] as const).flatMap(stream => {
    const from = ends[stream]
    if (!from) return []
    const each = { ...options, ...(offer && { offer: (pipe: Descriptor) => offer(stream, pipe) }) }
    return createOutput(from, libc, bytes => sink.take(stream, bytes), each)
  })
  const underWay = Promise.withResolvers<void>()
  // A client that has input waits until it can send that.
  const following = followSoon(outputs, { isHurried: ends.input !== undefined, onUnderWay: underWay.resolve })
  let isRunning = true
  let killing: Promise<void> | undefined
  const killTree = () => (killing ??= trees.kill(mark).finally(() => (killing = undefined)))
  const ended = async () => {
    const how = await exit
    isRunning = false
    following[Symbol.dispose]()
    await Promise.all(outputs.map(each => each.drained()))
    await killing
    return how
  }
  const exited = ended().finally(underWay.resolve)

  return {
    pid,
    ...(ends.input && { input: ends.input }),
    isUnderWay: underWay.promise,
    exited,
    get isRunning() {
      return isRunning
    },
    signal(name) {
      if (name === 'SIGKILL') void killTree()
      else signal(-pid, name)
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
  theirs: Pick<Program, 'stdin' | 'stdout' | 'stderr' | 'terminal'>
  ours: Descriptor[]
  input?: Input
  stdout: Descriptor
  stderr?: Descriptor
}

function pipeEnds(libc: Libc, hasInput: boolean): Ends {
  const pipes = [libc.pipe('read'), libc.pipe('read')] as const
  const [stdout, stderr] = [ownDescriptor(pipes[0].readEnd), ownDescriptor(pipes[1].readEnd)]
  const theirs = { stdout: pipes[0].writeEnd, stderr: pipes[1].writeEnd }
  if (!hasInput) return { theirs, ours: [stdout, stderr], stdout, stderr }
  const { readEnd, writeEnd } = libc.pipe('write')
  const stdin = ownDescriptor(writeEnd)
  return {
    theirs: { stdin: readEnd, ...theirs },
    ours: [stdin, stdout, stderr],
    input: createInput(stdin),
    stdout,
    stderr,
  }
}

function terminalEnds(libc: Libc, size: TerminalSize): Ends {
  const { master, slave, path } = openTerminal(libc, size)
  const stdout = ownDescriptor(master)
  return {
    theirs: { stdin: slave, stdout: slave, stderr: slave, terminal: path },
    ours: [stdout],
    input: { write: createInput(stdout).write, end() {} },
    stdout,
  }
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
