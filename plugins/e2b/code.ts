import { ApiError, messageOf } from '../../src/errors.ts'
import type { CodeResult, RunCodeOptions } from '../../src/plugin.ts'
import { type Box, INTERPRETER_PORT } from './sdk.ts'

const PROBE_MS = 5000
const DEFAULT_TIMEOUT_MS = 300_000

/** Whether the template has the code interpreter: then it answers on its port. */
export async function hasInterpreter(box: Box): Promise<boolean> {
  const { url, headers } = box.accessTo(INTERPRETER_PORT)
  try {
    const response = await fetch(`${url}/health`, { headers: { ...headers }, signal: AbortSignal.timeout(PROBE_MS) })
    await response.body?.cancel()
    return response.ok
  } catch {
    return false
  }
}

export async function runCode(
  box: Box,
  code: string,
  { language, env, timeoutMs = DEFAULT_TIMEOUT_MS, signal }: RunCodeOptions,
): Promise<CodeResult> {
  signal?.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  aborted.promise.catch(() => {})
  const abort = () => aborted.reject(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    const running = box.runCode(code, {
      timeoutMs,
      ...(language !== undefined && { language }),
      ...(env && { envs: { ...env } }),
    })
    const { logs, results, error } = await Promise.race([running, aborted.promise])
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
  } catch (error) {
    signal?.throwIfAborted()
    throw new ApiError('sandbox_unavailable', `The code could not be run: ${messageOf(error)}`)
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
