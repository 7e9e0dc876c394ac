const encoder = new TextEncoder()

/** Sent first in a stream: Bun holds back half of the headers until the first byte of the body. */
export const OPEN = encoder.encode(': open\n\n')
export const HEARTBEAT = encoder.encode(': keep-alive\n\n')
export const DONE = encoder.encode('data: [DONE]\n\n')

/** What comes before the number of a run's chunk in its frame, between that and the chunk, and at the end. */
export const frameTexts = (runId: string) => ({ before: `id: ${runId}/`, between: '\ndata: ', end: '\n\n' })

/** One server-sent event. JSON has no raw line break, so it is one line. */
export function frame(runId: string, seq: number, chunkJson: string): Uint8Array {
  const { before, between, end } = frameTexts(runId)
  return encoder.encode(`${before}${seq}${between}${chunkJson}${end}`)
}

/** The headers that name what a chat has made. A browser sees them only when they are exposed. */
export const idHeaders = ['x-sandbox-id', 'x-thread-id', 'x-run-id'] as const

/** The headers of every stream of server-sent events. No proxy in between may buffer it. */
export const eventStreamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const

export const streamHeaders = (ids: { sandboxId: string; threadId: string; runId: string }): Record<string, string> => ({
  ...eventStreamHeaders,
  connection: 'keep-alive',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-sandbox-id': ids.sandboxId,
  'x-thread-id': ids.threadId,
  'x-run-id': ids.runId,
  'access-control-expose-headers': idHeaders.join(', '),
})

/** Parses a Last-Event-ID header into run and chunk number; undefined when it is absent or has another format. */
export function parseLastEventId(value: string | null | undefined): { runId: string; seq: number } | undefined {
  const [, runId, seq] = /^(run_[0-9a-f-]{36})\/(\d{1,15})$/.exec(value?.trim() ?? '') ?? []
  return runId === undefined || seq === undefined ? undefined : { runId, seq: Number(seq) }
}
