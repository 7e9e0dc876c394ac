import type {
  Experimental_SandboxProcess as SandboxProcess,
  Experimental_SandboxSession as SandboxSession,
} from '@ai-sdk/provider-utils'
import { isCode } from '../error.ts'
import { readOutput } from './output.ts'
import { createPipe } from './pipe.ts'
import type { Place } from './place.ts'

type Command = Parameters<SandboxSession['spawn']>[0]

export function createProcesses(place: Place): Pick<SandboxSession, 'run' | 'spawn'> {
  const start = async ({ command, workingDirectory, env, abortSignal }: Command): Promise<number> => {
    abortSignal?.throwIfAborted()
    // The request is not aborted half-way, because a started process could not be ended then.
    const { pid } = await place.server.json<{ pid: number }>('POST', `${place.path}/processes`, {
      body: {
        command,
        cwd: place.absolute(workingDirectory ?? place.defaultWorkingDirectory),
        ...(env && { envs: env }),
        // With this, the process waits for its reader, so no output is lost, and it goes on when this program has gone.
        waitForReader: 'attached',
      },
    })
    return pid
  }

  /** Kills the whole process tree. A process that has ended, or a stopped sandbox, needs nothing. */
  const kill = async (pid: number): Promise<void> => {
    try {
      await place.server.request('POST', `${place.path}/processes/${pid}/signal`, { body: { signal: 'SIGKILL' } })
    } catch (error) {
      if (!isCode(error, 'conflict', 'process_not_found', 'sandbox_not_found')) throw error
    }
  }

  const spawn = async (command: Command): Promise<SandboxProcess> => {
    const { abortSignal } = command
    const pid = await start(command)
    const gone = new AbortController()
    const [stdout, stderr] = [createPipe(), createPipe()]
    const follow = async () => {
      for await (const event of readOutput(place, pid, gone.signal)) {
        if (event.type === 'exit') return { exitCode: event.exitCode }
        await (event.type === 'stdout' ? stdout : stderr).write(event.bytes)
      }
      throw new Error('The output ended without an exit.')
    }
    const abort = () => {
      gone.abort(abortSignal?.reason)
      stdout.close()
      stderr.close()
      killed = kill(pid)
      // It is awaited below.
      killed.catch(() => {})
    }
    let killed: Promise<void> | undefined
    if (abortSignal?.aborted) abort()
    else abortSignal?.addEventListener('abort', abort, { once: true })
    const exit = follow().then(
      result => {
        stdout.close()
        stderr.close()
        return result
      },
      async error => {
        await killed?.catch(() => {})
        stdout.fail(error)
        stderr.fail(error)
        throw error
      },
    )
    exit.catch(() => {}).finally(() => abortSignal?.removeEventListener('abort', abort))
    return {
      pid,
      stdout: stdout.stream,
      stderr: stderr.stream,
      wait: () => exit,
      kill: () => kill(pid),
    }
  }

  return {
    spawn,
    async run(command) {
      const process = await spawn(command)
      const [stdout, stderr, { exitCode }] = await Promise.all([
        textOf(process.stdout),
        textOf(process.stderr),
        process.wait(),
      ])
      return { exitCode, stdout, stderr }
    },
  }
}

const textOf = (stream: ReadableStream<Uint8Array>): Promise<string> => new Response(stream).text()
