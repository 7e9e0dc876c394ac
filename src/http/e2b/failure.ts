import type { Log } from '../../core/runtime.ts'
import { failureResponse } from '../failure.ts'

/** The statuses of E2B's own service for codes that only this server has. */
const statuses: Readonly<Record<string, number>> = { agent_not_found: 404, sandbox_unavailable: 500 }

/** The answer to a failed request of E2B's clients, in the form that they read. */
export async function e2bFailure(error: unknown, log: Log, requestId?: string): Promise<Response> {
  const response = failureResponse(error, log, requestId)
  const { error: known, message } = (await response.json()) as { error: { code: string }; message: string }
  const status = statuses[known.code] ?? response.status
  response.headers.delete('content-length')
  return Response.json({ code: status, message }, { status, headers: response.headers })
}

/** The answer for a sandbox that does not run, does not exist, or is another team's: these look the same. */
export const notRunning = (named: string): Response =>
  Response.json({ sandboxId: named, message: 'The sandbox was not found', code: 502 }, { status: 502 })

/** An error answer in the form that E2B's clients read. */
export const refusal = (status: number, message: string, headers: Record<string, string> = {}): Response =>
  Response.json({ code: status, message }, { status, headers })
