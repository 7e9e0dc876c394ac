import { ApiError, messageOf } from '../../src/errors.ts'
import type { CodeResult, RunCodeOptions } from '../../src/plugin-api/index.ts'
import { type Box, INTERPRETER_PORT } from './sdk.ts'

/** The code interpreter of one sandbox, where its template has it. */
export interface Interpreter {
  /** Then it answers on its port. */
  isThere(box: Box): Promise<boolean>
  run(box: Box, code: string, options: RunCodeOptions): Promise<CodeResult>
}

const PROBE_MS = 5000
const DEFAULT_TIMEOUT_MS = 300_000

export function createInterpreter(): Interpreter {
  /** A context for each language and directory: the variables of its cells, and what can be started anew. */
  const contexts = new Map<string, Promise<string>>()

  const contextOf = (box: Box, language: string, cwd: string): Promise<string> => {
    const key = `${language} ${cwd}`
    const made = contexts.get(key) ?? box.createCodeContext({ language, cwd }).then(({ id }) => id)
    contexts.set(key, made)
    made.catch(() => contexts.delete(key))
    return made
  }

  return {
    async isThere(box) {
      const { url, headers } = box.accessTo(INTERPRETER_PORT)
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

    async run(box, code, { language = 'python', cwd = '/home/user', env, timeoutMs = DEFAULT_TIMEOUT_MS, signal }) {
      signal?.throwIfAborted()
      const stopped = Promise.withResolvers<never>()
      stopped.promise.catch(() => {})
      const late = new ApiError('command_timeout', `The cell did not end within ${timeoutMs} ms and was stopped.`)
      const timer = setTimeout(() => stopped.reject(late), timeoutMs)
      const abort = () => stopped.reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      let context: string | undefined
      try {
        context = await Promise.race([contextOf(box, language, cwd), stopped.promise])
        // Its own bound would leave the cell running.
        const running = box.runCode(code, {
          context: { id: context, language, cwd },
          timeoutMs: 0,
          ...(env && { envs: { ...env } }),
        })
        return resultOf(await Promise.race([running, stopped.promise]))
      } catch (error) {
        // Ended with all that it has: that is what stops a cell for certain. Variables are lost.
        if ((error === late || signal?.aborted) && context !== undefined)
          await box.restartCodeContext(context).catch(() => {})
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

function resultOf({ logs, results, error }: Awaited<ReturnType<Box['runCode']>>): CodeResult {
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
