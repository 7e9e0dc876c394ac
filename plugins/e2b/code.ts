import { ApiError, messageOf } from '../../src/errors.ts'
import type { CodeResult, RunCodeOptions } from '../../src/plugin-api/index.ts'
import { type E2bSandbox, INTERPRETER_PORT } from './sdk.ts'

/** The code interpreter of one sandbox, where its template has it. */
export interface Interpreter {
  /** Whether the interpreter answers on its port. */
  isThere(sandbox: E2bSandbox): Promise<boolean>
  run(sandbox: E2bSandbox, code: string, options: RunCodeOptions): Promise<CodeResult>
}

const PROBE_MS = 5000
const DEFAULT_TIMEOUT_MS = 300_000

export function createInterpreter(): Interpreter {
  /** One context for each language and directory. Its cells share variables. */
  const contexts = new Map<string, Promise<string>>()

  const openContext = (sandbox: E2bSandbox, language: string, cwd: string): Promise<string> => {
    const key = `${language} ${cwd}`
    const made = contexts.get(key) ?? sandbox.createCodeContext({ language, cwd }).then(({ id }) => id)
    contexts.set(key, made)
    made.catch(() => contexts.delete(key))
    return made
  }

  return {
    async isThere(sandbox) {
      const { url, headers } = sandbox.accessTo(INTERPRETER_PORT)
      try {
        const response = await fetch(`${url}/health`, {
          headers: { ...headers },
          signal: AbortSignal.timeout(PROBE_MS),
        })
        await response.body?.cancel()
        return response.ok
      } catch {
        return false
      }
    },

    async run(sandbox, code, { language = 'python', cwd = '/home/user', env, timeoutMs = DEFAULT_TIMEOUT_MS, signal }) {
      signal?.throwIfAborted()
      const stopped = Promise.withResolvers<never>()
      stopped.promise.catch(() => {})
      const late = new ApiError('command_timeout', `The cell did not end within ${timeoutMs} ms and was stopped.`)
      const timer = setTimeout(() => stopped.reject(late), timeoutMs)
      const abort = () => stopped.reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      let context: string | undefined
      try {
        context = await Promise.race([openContext(sandbox, language, cwd), stopped.promise])
        // The SDK's own timeout would leave the cell running.
        const running = sandbox.runCode(code, {
          context: { id: context, language, cwd },
          timeoutMs: 0,
          ...(env && { envs: { ...env } }),
        })
        return toCodeResult(await Promise.race([running, stopped.promise]))
      } catch (error) {
        // Only a restart of the context surely stops a cell. Its variables are lost.
        if ((error === late || signal?.aborted) && context !== undefined)
          await sandbox.restartCodeContext(context).catch(() => {})
        else contexts.delete(`${language} ${cwd}`)
        signal?.throwIfAborted()
        if (error instanceof ApiError) throw error
        throw new ApiError('sandbox_unavailable', `The code could not be run: ${messageOf(error)}`)
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
      }
    },
  }
}

function toCodeResult({ logs, results, error }: Awaited<ReturnType<E2bSandbox['runCode']>>): CodeResult {
  return {
    stdout: logs.stdout.join(''),
    stderr: logs.stderr.join(''),
    results: results.map(({ text, png, jpeg }) => ({
      ...(text !== undefined && { text }),
      images: [
        ...(png ? [{ mediaType: 'image/png', data: png }] : []),
        ...(jpeg ? [{ mediaType: 'image/jpeg', data: jpeg }] : []),
      ],
    })),
    ...(error && { error: { name: error.name, value: error.value, traceback: error.traceback } }),
  }
}
