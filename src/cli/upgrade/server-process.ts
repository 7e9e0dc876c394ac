import { closeSync, openSync, readlinkSync, statSync } from 'node:fs'
import { canRenew, RENEW_SIGNAL, readWords } from './renew.ts'
import { isServiceProcess, restartService, startService, stopService } from './service-process.ts'
import type { StartedWith } from './try-executable.ts'
import { isAlive, waitUntil } from './wait.ts'

/** A server that runs, and what is needed to start it again when its process is gone. */
export interface ServerProcess extends StartedWith {
  pid: number
  isService: boolean
  /** The path of the running executable, even when another file is there now. */
  executable: string
  output: Opened
}

/** The descriptors of the server's output. */
interface Opened {
  stdout: number | 'ignore'
  stderr: number | 'ignore'
}

/** How long a server may take to end: its runs get some time to finish. */
const ENDED_WITHIN_MS = 10 * 60_000
/** How long a server that was never ready may take: it has nothing to finish. */
const KILLED_AFTER_MS = 20_000

/** Reads a server's process. Throws when it belongs to another account, because only that account could start it again. */
export function readServer(pid: number): ServerProcess {
  const isService = isServiceProcess(pid)
  if (!isService && statSync(`/proc/${pid}`).uid !== process.getuid?.())
    throw new Error(`upgrade: the server runs under another account: run this as that one`)
  const env = Object.fromEntries(
    readWords(`/proc/${pid}/environ`).map(each => [
      each.slice(0, each.indexOf('=')),
      each.slice(each.indexOf('=') + 1),
    ]),
  )
  return {
    pid,
    isService,
    executable: executableOf(pid),
    words: readWords(`/proc/${pid}/cmdline`),
    env,
    cwd: readlinkSync(`/proc/${pid}/cwd`),
    output: { stdout: openOutput(pid, 1), stderr: openOutput(pid, 2) },
  }
}

export const executableOf = (pid: number): string => readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, '')

/** Whether a process runs from the file that is at this path now. */
export function runsFrom(pid: number, path: string): boolean {
  try {
    const [its, file] = [statSync(`/proc/${pid}/exe`), statSync(path)]
    return its.ino === file.ino && its.dev === file.dev
  } catch {
    return false
  }
}

/**
 * Ends a server in order and starts the executable at its path. Resolves, when the old process has ended, to the pid of the new
 * one as far as it is known; the new server need not be ready yet.
 */
export async function restart(server: ServerProcess, path: string): Promise<number> {
  if (server.isService) {
    restartService()
    // The old server's runs get some time to finish. The new server's time begins afterwards.
    await waitUntil(() => !isAlive(server.pid), ENDED_WITHIN_MS)
    return server.pid
  }
  if (!canRenew(server.pid)) {
    await stop(server)
    return start(server, path)
  }
  process.kill(server.pid, RENEW_SIGNAL)
  // The same pid may already run another file.
  const hasEnded = () => !isAlive(server.pid) || runsFrom(server.pid, path)
  if (!(await waitUntil(hasEnded, ENDED_WITHIN_MS))) throw new Error('the server does not end')
  return server.pid
}

/** Ends a server, by force when it does not end in time. */
export async function stop(server: ServerProcess, pid = server.pid, withinMs = ENDED_WITHIN_MS): Promise<void> {
  if (server.isService) return stopService()
  if (!isAlive(pid)) return
  process.kill(pid, 'SIGTERM')
  if (await waitUntil(() => !isAlive(pid), withinMs)) return
  process.kill(pid, 'SIGKILL')
  await waitUntil(() => !isAlive(pid), KILLED_AFTER_MS)
}

/** Ends a server that was never ready. */
export const stopFailed = (server: ServerProcess, pid = server.pid): Promise<void> => stop(server, pid, KILLED_AFTER_MS)

/** Starts a server in the way it was started before. Returns its pid, as far as it is known. */
export function start(server: ServerProcess, path: string): number {
  if (server.isService) {
    startService()
    return server.pid
  }
  const { words, env, cwd, output } = server
  const child = Bun.spawn([path, ...words.slice(1)], {
    ...{ env, cwd, detached: true },
    stdio: ['ignore', output.stdout, output.stderr],
  })
  child.unref()
  return child.pid
}

export function release({ output }: ServerProcess): void {
  for (const each of [output.stdout, output.stderr]) if (each !== 'ignore') closeSync(each)
}

/** Opens the output of a process while the process exists. A socket, such as the journal's, cannot be opened. */
function openOutput(pid: number, fd: 1 | 2): number | 'ignore' {
  try {
    return openSync(`/proc/${pid}/fd/${fd}`, 'a')
  } catch {
    return 'ignore'
  }
}
