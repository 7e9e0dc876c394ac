import type { ToolResultPart } from 'ai'
import { messageOf } from '../../../src/errors.ts'
import type { EngineEvent } from '../../../src/plugin-api/index.ts'
import type { ModelToolCall } from '../model/model-call.ts'
import { type ToolOutput, toModelError, toModelOutput } from './output.ts'
import { createQueue } from './queue.ts'
import type { Tool, ToolContext } from './tool.ts'

/** The most calls of one answer that run at a time. */
const MAX_AT_ONCE = 8

/**
 * Runs an answer's tool calls, side by side where they may, and returns their results in order. Every call has ended when this
 * returns, also after an abort.
 */
export async function* runCalls(
  calls: readonly ModelToolCall[],
  tools: ReadonlyMap<string, Tool>,
  context: Omit<ToolContext, 'progress'>,
): AsyncGenerator<EngineEvent, ToolResultPart[]> {
  const { signal } = context
  const results: ToolResultPart[] = []
  for (const batch of toBatches(calls, tools)) {
    if (signal.aborted) break
    const events = createQueue<EngineEvent>()
    const running = Promise.all(
      batch.map(async call => {
        const { part, event } = await runCall(call, tools, context, events.push)
        if (!signal.aborted) events.push(event)
        return part
      }),
    ).finally(events.end)
    try {
      yield* events.values()
    } finally {
      results.push(...(await running))
    }
  }
  return results
}

/** Groups calls that may run together. A call that runs alone is a batch of its own. */
function toBatches(calls: readonly ModelToolCall[], tools: ReadonlyMap<string, Tool>): ModelToolCall[][] {
  const batches: ModelToolCall[][] = []
  let open: ModelToolCall[] | undefined
  for (const call of calls) {
    const runsAlone = tools.get(call.name)?.runsAlone ?? false
    if (open && !runsAlone && open.length < MAX_AT_ONCE) {
      open.push(call)
      continue
    }
    const batch = [call]
    batches.push(batch)
    open = runsAlone ? undefined : batch
  }
  return batches
}

/** Never throws: the model gets a failure as the result. */
async function runCall(
  { callId, name, input, problem }: ModelToolCall,
  tools: ReadonlyMap<string, Tool>,
  context: Omit<ToolContext, 'progress'>,
  push: (event: EngineEvent) => void,
): Promise<{ part: ToolResultPart; event: EngineEvent }> {
  const part = { type: 'tool-result', toolCallId: callId, toolName: name } as const
  const fail = (error: string) => ({
    part: { ...part, output: toModelError(error) },
    event: { type: 'tool-result', callId, output: null, error } as const,
  })
  const tool = tools.get(name)
  if (problem !== undefined || !tool) return fail(problem ?? `There is no tool ${name}.`)
  const progress = (data: Readonly<Record<string, unknown>>) => push({ type: 'tool-progress', callId, data })
  let output: ToolOutput
  try {
    output = await tool.run(input, { ...context, progress })
  } catch (error) {
    return fail(messageOf(error))
  }
  return { part: { ...part, output: toModelOutput(output) }, event: { type: 'tool-result', callId, output } }
}
