import type { Log } from '../../core/runtime.ts'
import { failureResponse } from '../failure.ts'

/** What E2B's own service says where this server has a code of its own. */
const statuses: Readonly<Record<string, number>> = { agent_not_found: 404, sandbox_unavailable: 500 }

/** The answer to a request of E2B's clients that failed: as any other, in the form that they read. */
export async function e2bFailure(error: unknown, log: Log, requestId?: string): Promise<Response> {
  const response = failureResponse(error, log, requestId)
  const { error: known, message } = (await response.json()) as { error: { code: string }; message: string }
  const status = statuses[known.code] ?? response.status
  response.headers.delete('content-length')
  return Response.json({ code: status, message }, { status, headers: response.headers })
}

/** The answer for a sandbox that does not run, is not there, or is another team's: these look the same. */
export const notRunning = (named: string): Response =>
  Response.json({ sandboxId: named, message: 'The sandbox was not found', code: 502 }, { status: 502 })

/** An answer in the form that E2B's clients read. */
export const refusal = (status: number, message: string, headers: Record<string, string> = {}): Response =>
  Response.json({ code: status, message }, { status, headers })
