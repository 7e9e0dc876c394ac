import { constants } from 'node:os'
import { ApiError } from '../../src/errors.ts'
import type { ProcessExit, SandboxProcess, SpawnOptions } from '../../src/plugin-api/index.ts'
import { type Envd, NotRunning } from './envd.ts'
import { type Call, startCall } from './marked-command.ts'
import { CALL, KILL, KILL_OTHERS } from './scripts.ts'

const baseEnvironment = { HOME: '/home/user', USER: 'root', LOGNAME: 'root', LANG: 'C.UTF-8' }

/** A tree that is told to die by the shell that started it may take so long; then it is killed from outside. */
const SELF_KILL_MS = 3000
/** After that, it is given up. */
const KILLED_WITHIN_MS = 30_000

/** More at once would wait in the daemon. */
const INPUT_BYTES = 64 * 1024

/** What runs in the foreground, to be given up when the sandbox goes. */
export type Calls = Set<Call>

/** Runs a command as `Environment.spawn` promises. `server` names this server to the next one. */
export async function spawnInside(
  envd: Envd,
  { command, cwd, env, stdin = 'ignore', pty, signal }: SpawnOptions,
  server: string,
  calls: Calls,
): Promise<SandboxProcess> {
  signal?.throwIfAborted()
  const argv = typeof command === 'string' ? ['/bin/bash', '-c', command] : command
  const call = await startCall(envd, {
    command: mark => [
      ...['/bin/bash', '-pc', CALL, 'threadbox-call', String(mark), server],
      ...[pty ? 'pty' : 'pipe', stdin, cwd ?? '', ...argv],
    ],
    env: { ...baseEnvironment, ...(pty && { TERM: 'xterm-256color' }), ...env },
    ...(pty && { pty }),
  })
  const [word, value] = call.said.split(' ')
  const pid = Number(value)
  if (word !== 'pid' || !Number.isSafeInteger(pid)) {
    call.fail(new Error('refused'))
    void envd.closeInput(call.pid).catch(() => {})
    if (word === 'cwd') throw new ApiError('invalid_request', `cwd: no such directory: ${cwd}`)
    throw new ApiError('invalid_request', `The command could not be started: no such program: ${argv[0]}`)
  }
  calls.add(call)

  let asked: NodeJS.Signals | undefined
  const kill = (name: NodeJS.Signals = 'SIGKILL') => {
    asked = name
    if (name === 'SIGKILL') killTree(envd, call, pty !== undefined)
    else run(envd, ['/bin/bash', '-pc', 'kill -s "$0" -- "$1"', name.slice(3), `-${pid}`]).catch(() => {})
  }
  const abort = () => kill()
  signal?.addEventListener('abort', abort)
  const exited = call.ended
    .then(async said => {
      // The shell was killed: its tree may go on.
      if (said === undefined) await killFromOutside(envd, call).catch(unlessGone)
      return exitOf(said, asked)
    })
    .finally(() => {
      calls.delete(call)
      signal?.removeEventListener('abort', abort)
    })
  exited.catch(() => {})
  if (signal?.aborted) kill()
  return {
    pid,
    stdout: call.stdout,
    stderr: call.stderr,
    exited,
    kill,
    ...((stdin === 'pipe' || pty) && { stdin: inputOf(envd, call, pty ? 'pty' : 'stdin') }),
    ...(pty && { resize: size => void envd.resize(call.pid, size).catch(() => {}) }),
  }
}

/** Runs a program of ours, and waits for its end. */
async function run(envd: Envd, command: readonly string[]): Promise<void> {
  const abort = new AbortController()
  try {
    for await (const { type } of envd.start({ command }, abort.signal)) if (type === 'end') return
  } finally {
    abort.abort()
  }
}

/**
 * The shell that started the command kills its tree when it is asked to: it needs no new process for that. One that waits
 * for what has its terminal does not hear; it is killed, and then its tree is, before the end is told.
 */
function killTree(envd: Envd, call: Call, isTerminal: boolean): void {
  const fromOutside = () => void killFromOutside(envd, call).catch(() => {})
  envd.signal(call.pid, isTerminal ? 'SIGKILL' : 'SIGTERM').catch(fromOutside)
  const late = new ApiError('sandbox_unavailable', 'The sandbox does not end what it is to kill.')
  const timers = [setTimeout(fromOutside, SELF_KILL_MS), setTimeout(() => call.fail(late), KILLED_WITHIN_MS)]
  const done = () => timers.forEach(clearTimeout)
  call.ended.then(done, done)
}

/** With its sandbox, all of it is gone. */
const unlessGone = (error: unknown): void => {
  if (!(error instanceof NotRunning)) throw error
}

const killFromOutside = (envd: Envd, { mark }: Call): Promise<void> =>
  run(envd, ['/bin/bash', '-pc', KILL, 'threadbox-kill', String(mark)])

/** A shell tells by 128 and more that a signal ended its child. Without a word it was killed, as all of its tree. */
function exitOf(said: string | undefined, asked: NodeJS.Signals | undefined): ProcessExit {
  const exitCode = said === undefined ? 137 : Number(said.split(' ')[1])
  if (!Number.isSafeInteger(exitCode)) throw new ApiError('sandbox_unavailable', 'The sandbox gave no exit code.')
  const number = exitCode - 128
  const names = Object.entries(constants.signals).flatMap(([name, each]) => (each === number ? [name] : []))
  const name = names.find(each => each === asked) ?? names[0]
  return name === undefined ? { exitCode } : { exitCode, signal: name }
}

export function inputOf(envd: Envd, call: Pick<Call, 'pid'>, kind: 'stdin' | 'pty'): WritableStream<Uint8Array> {
  let isOpen = true
  const end = async () => {
    if (kind === 'stdin') await envd.closeInput(call.pid).catch(() => {})
  }
  return new WritableStream<Uint8Array>({
    async write(chunk) {
      for (let at = 0; at < chunk.byteLength && isOpen; at += INPUT_BYTES) {
        await envd.sendInput(call.pid, kind, chunk.subarray(at, at + INPUT_BYTES)).catch(() => {
          // It has ended, or reads no more: what it is sent then is dropped.
          isOpen = false
        })
      }
    },
    close: end,
    abort: end,
  })
}

/** Ends what another server had in the foreground, with its trees. What commands left behind goes on. */
export const killOthers = (envd: Envd, server: string): Promise<void> =>
  run(envd, ['/bin/bash', '-pc', KILL_OTHERS, 'threadbox-others', server])
