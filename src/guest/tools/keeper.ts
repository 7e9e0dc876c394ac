import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { JsonObject } from '../../read/json.ts'
import type { ToolInfo } from './bundle.ts'
import { type FromRunner, failure, type ToolResult, type ToRunner } from './messages.ts'

/** A bundle's tools, run by a process of their own: one that hangs, exits or prints harms no other. */
export interface Keeper {
  /** Throws when the bundle cannot be loaded. */
  load(): Promise<{ tools: ToolInfo[]; description: JsonObject }>
  /** Never rejects. Starts the process again when the last one has ended. */
  call(tool: string, input: unknown, signal: AbortSignal): Promise<ToolResult>
  close(): void
}

export interface KeeperOptions {
  path: string
  /** Of one call. */
  timeoutMs: number
  /** Takes what the bundle prints. */
  onOutput(chunk: Uint8Array): void
}

const LOAD_WITHIN_MS = 30_000

interface Runner {
  process: ChildProcess
  loaded: Promise<{ tools: ToolInfo[]; description: JsonObject }>
  calls: Map<number, (result: ToolResult) => void>
  /** Kills it with all that it started. */
  end(reason: string): void
}

export function keepTools({ path, timeoutMs, onOutput }: KeeperOptions): Keeper {
  let runner: Runner | undefined
  let lastId = 0
  const running = (): Runner => {
    runner ??= startRunner(path, onOutput, ended => {
      if (runner === ended) runner = undefined
    })
    return runner
  }

  return {
    load: () => running().loaded,
    async call(tool, input, signal) {
      const { process: child, loaded, calls, end } = running()
      try {
        await loaded
      } catch (error) {
        return failure(error instanceof Error ? error.message : String(error))
      }
      if (!child.connected) return failure('The tools have just ended; the next call starts them again.')
      const id = ++lastId
      return await new Promise(resolve => {
        const late = () => end(`${tool} did not end within ${timeoutMs} ms and was stopped.`)
        const timer = setTimeout(late, timeoutMs)
        const cancel = () => child.connected && child.send({ cancel: id } satisfies ToRunner)
        signal.addEventListener('abort', cancel)
        calls.set(id, result => {
          calls.delete(id)
          clearTimeout(timer)
          signal.removeEventListener('abort', cancel)
          resolve(result)
        })
        child.send({ id, tool, input } satisfies ToRunner)
      })
    },
    close: () => runner?.end('The tools have ended.'),
  }
}

function startRunner(path: string, onOutput: (chunk: Uint8Array) => void, onEnd: (runner: Runner) => void): Runner {
  const [program = '', ...args] = ownCommand()
  const child = spawn(program, [...args, path, '--runner'], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // A session of its own, to be killed as a whole.
    detached: true,
  })
  const calls = new Map<number, (result: ToolResult) => void>()
  let reason: string | undefined
  const end = (why: string) => {
    reason ??= why
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has just ended.
    }
  }
  child.stdout?.on('data', onOutput)
  child.stderr?.on('data', onOutput)

  const loaded = new Promise<{ tools: ToolInfo[]; description: JsonObject }>((resolve, reject) => {
    const timer = setTimeout(() => end(`The bundle did not load within ${LOAD_WITHIN_MS} ms.`), LOAD_WITHIN_MS)
    child.on('message', (message: FromRunner) => {
      if ('id' in message) return calls.get(message.id)?.(message.result)
      clearTimeout(timer)
      if ('tools' in message) return resolve(message)
      reject(new Error(`The bundle cannot be loaded: ${message.failed}`))
      end('The bundle cannot be loaded.')
    })
    const over = (why: string) => {
      clearTimeout(timer)
      reject(new Error(why))
      for (const finish of [...calls.values()]) finish(failure(why))
      onEnd(runner)
    }
    child.on('error', error => over(`The tools could not be started: ${error.message}`))
    child.on('exit', (code, signal) => {
      // What it left in its session goes with it.
      if (child.pid !== undefined) killSession(child.pid)
      over(
        reason ?? `The tools ended unexpectedly (${signal ?? `exit code ${code}`}); the next call starts them again.`,
      )
    })
  })
  loaded.catch(() => {})
  const runner: Runner = { process: child, loaded, calls, end }
  return runner
}

function killSession(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nothing is left of it.
  }
}

/** How this very process was started, up to the bundle's path: with a loader of its own, no other name is right. */
function ownCommand(): string[] {
  const words = readFileSync('/proc/self/cmdline', 'utf8').split('\0').slice(0, -1)
  return words.slice(0, words.length - process.argv.slice(2).length + argumentsBefore())
}

/** `tools` when this is the executable's subcommand, nothing when it is a script of its own. */
const argumentsBefore = (): number => (process.argv[2] === 'tools' ? 1 : 0)
