import { constants } from 'node:os'
import { ApiError } from '../../src/errors.ts'
import type { ProcessExit, SandboxProcess, SpawnOptions } from '../../src/plugin-api/index.ts'
import { type Envd, NotRunning } from './envd.ts'
import { type MarkedCommand, startMarkedCommand } from './marked-command.ts'
import { CALL, KILL, KILL_OTHERS } from './scripts.ts'

const baseEnvironment = { HOME: '/home/user', USER: 'root', LOGNAME: 'root', LANG: 'C.UTF-8' }

/** The script has this long to kill its command's tree; then another process kills it. */
const SELF_KILL_MS = 3000
/** A command that still runs after this time fails with an error. */
const KILLED_WITHIN_MS = 30_000

/** The most input in one request: more would wait in the daemon. */
const INPUT_BYTES = 64 * 1024

/** The commands in the foreground, which fail when the sandbox is paused or deleted. */
export type MarkedCommands = Set<MarkedCommand>

/** Runs a command as `Environment.spawn` promises. `server` names this server to the next one. */
export async function spawnInside(
  envd: Envd,
  { command, cwd, env, stdin = 'ignore', pty, signal }: SpawnOptions,
  server: string,
  running: MarkedCommands,
): Promise<SandboxProcess> {
  signal?.throwIfAborted()
  const argv = typeof command === 'string' ? ['/bin/bash', '-c', command] : command
  const marked = await startMarkedCommand(envd, {
    command: mark => [
      ...['/bin/bash', '-pc', CALL, 'threadbox-call', String(mark), server],
      ...[pty ? 'pty' : 'pipe', stdin, cwd ?? '', ...argv],
    ],
    env: { ...baseEnvironment, ...(pty && { TERM: 'xterm-256color' }), ...env },
    ...(pty && { pty }),
  })
  const [kind, value] = marked.report.split(' ')
  const pid = Number(value)
  if (kind !== 'pid' || !Number.isSafeInteger(pid)) {
    marked.fail(new Error('refused'))
    // A script that has ended has no input left to close.
    void envd.closeInput(marked.pid).catch(() => {})
    if (kind === 'cwd') throw new ApiError('invalid_request', `cwd: no such directory: ${cwd}`)
    throw new ApiError('invalid_request', `The command could not be started: no such program: ${argv[0]}`)
  }
  running.add(marked)

  let requestedSignal: NodeJS.Signals | undefined
  const kill = (name: NodeJS.Signals = 'SIGKILL') => {
    requestedSignal = name
    if (name === 'SIGKILL') killTree(envd, marked, pty !== undefined)
    // The command may have ended before the signal.
    else run(envd, ['/bin/bash', '-pc', 'kill -s "$0" -- "$1"', name.slice(3), `-${pid}`]).catch(() => {})
  }
  const abort = () => kill()
  signal?.addEventListener('abort', abort)
  const exited = marked.ended
    .then(async report => {
      // The script was killed: the command's tree may still run.
      if (report === undefined) await killFromOutside(envd, marked).catch(unlessGone)
      return toExit(report, requestedSignal)
    })
    .finally(() => {
      running.delete(marked)
      signal?.removeEventListener('abort', abort)
    })
  // Nobody may wait for the exit.
  exited.catch(() => {})
  if (signal?.aborted) kill()
  return {
    pid,
    stdout: marked.stdout,
    stderr: marked.stderr,
    exited,
    kill,
    ...((stdin === 'pipe' || pty) && { stdin: createInput(envd, marked, pty ? 'pty' : 'stdin') }),
    // A terminal that has ended has no size.
    ...(pty && { resize: size => void envd.resize(marked.pid, size).catch(() => {}) }),
  }
}

/** Runs a program and waits for its end. */
async function run(envd: Envd, command: readonly string[]): Promise<void> {
  const abort = new AbortController()
  try {
    for await (const { type } of envd.start({ command }, abort.signal)) if (type === 'end') return
  } finally {
    abort.abort()
  }
}

/**
 * Kills a command's tree. The script does it on SIGTERM, without a new process. A script that waits for a terminal's command
 * does not get SIGTERM: it is killed itself, and its tree after it, before `exited` resolves.
 */
function killTree(envd: Envd, marked: MarkedCommand, isTerminal: boolean): void {
  // When this fails, the command fails after KILLED_WITHIN_MS.
  const fromOutside = () => void killFromOutside(envd, marked).catch(() => {})
  envd.signal(marked.pid, isTerminal ? 'SIGKILL' : 'SIGTERM').catch(fromOutside)
  const late = new ApiError('sandbox_unavailable', 'The sandbox did not kill the command in time.')
  const timers = [setTimeout(fromOutside, SELF_KILL_MS), setTimeout(() => marked.fail(late), KILLED_WITHIN_MS)]
  const done = () => timers.forEach(clearTimeout)
  marked.ended.then(done, done)
}

/** A sandbox that does not run has no processes left to kill. */
const unlessGone = (error: unknown): void => {
  if (!(error instanceof NotRunning)) throw error
}

const killFromOutside = (envd: Envd, { mark }: MarkedCommand): Promise<void> =>
  run(envd, ['/bin/bash', '-pc', KILL, 'threadbox-kill', String(mark)])

/** A shell reports 128 plus its number for a signal. Without a report the whole tree was killed. */
function toExit(report: string | undefined, requestedSignal: NodeJS.Signals | undefined): ProcessExit {
  const exitCode = report === undefined ? 137 : Number(report.split(' ')[1])
  if (!Number.isSafeInteger(exitCode)) throw new ApiError('sandbox_unavailable', 'The sandbox gave no exit code.')
  const number = exitCode - 128
  const names = Object.entries(constants.signals).flatMap(([name, each]) => (each === number ? [name] : []))
  const name = names.find(each => each === requestedSignal) ?? names[0]
  return name === undefined ? { exitCode } : { exitCode, signal: name }
}

export function createInput(
  envd: Envd,
  marked: Pick<MarkedCommand, 'pid'>,
  kind: 'stdin' | 'pty',
): WritableStream<Uint8Array> {
  let isOpen = true
  const end = async () => {
    // The command may have ended.
    if (kind === 'stdin') await envd.closeInput(marked.pid).catch(() => {})
  }
  return new WritableStream<Uint8Array>({
    async write(chunk) {
      for (let at = 0; at < chunk.byteLength && isOpen; at += INPUT_BYTES) {
        await envd.sendInput(marked.pid, kind, chunk.subarray(at, at + INPUT_BYTES)).catch(() => {
          // The command has ended or closed its stdin: later input is dropped.
          isOpen = false
        })
      }
    },
    close: end,
    abort: end,
  })
}

/** Kills the foreground commands of other servers, with their trees. Processes that commands left behind go on. */
export const killOthers = (envd: Envd, server: string): Promise<void> =>
  run(envd, ['/bin/bash', '-pc', KILL_OTHERS, 'threadbox-others', server])
