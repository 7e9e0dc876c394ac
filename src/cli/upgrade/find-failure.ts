import { findServerProcess } from '../running-servers.ts'
import { findLastError, hasFailed } from '../service/systemd.ts'
import { askReadiness } from './ask-readiness.ts'
import { runsFrom, type ServerProcess } from './server-process.ts'
import { isAlive, waitUntil } from './wait.ts'

/** When there was no process for this long, no supervisor starts one. */
const GONE_FOR_MS = 1500

export interface Wanted {
  server: ServerProcess
  dataDirectory: string
  /** The path that the new process must run from. */
  path: string
  withinMs: number
  /** Whether the server must be ready; otherwise any answer is enough. */
  hasToBeReady: boolean
}

/**
 * Waits for a server that this process, or a supervisor such as systemd, has started. `why` is absent when the server is ready.
 */
export async function findFailure({
  server,
  dataDirectory,
  path,
  withinMs,
  hasToBeReady,
  pid,
}: Wanted & { pid: number }): Promise<{ why?: string; tookMs: number }> {
  const begun = performance.now()
  let why = 'did not answer in time'
  let isReady = false
  let isOver = false
  let seenAt = begun
  await waitUntil(async () => {
    const found = findServerProcess(dataDirectory)
    if (found !== undefined && runsFrom(found, path)) {
      const answer = await askReadiness(found)
      isReady = answer !== undefined && (answer.isReady || !hasToBeReady)
      if (answer?.isReady === false) why = `is not ready: ${answer.reasons}`
    }
    const now = performance.now()
    if (isReady || found !== undefined || isAlive(pid)) seenAt = now
    else if (now - seenAt > GONE_FOR_MS && !server.isService) {
      isOver = true
      why = 'ended before it was ready; what it said is where the server writes its log'
    }
    if (server.isService && hasFailed()) {
      isOver = true
      why = `did not start: ${findLastError()}`
    }
    return isReady || isOver
  }, withinMs)
  return { ...(!isReady && { why }), tookMs: performance.now() - begun }
}
