import { type Static, Type } from '@sinclair/typebox'
import { bounds } from '../../../bounds.ts'
import { type JsonObject, objectOf } from '../../../read/json.ts'
import { assertDone } from '../ask.ts'
import { createBoundedText } from '../bounded-text.ts'
import { eventsOf } from '../events.ts'
import { type Call, type Outcome, type Tool, tool } from '../tool.ts'
import { AgentSlug, DEFAULT_CHARACTERS, SandboxId } from './fields.ts'

const Chat = Type.Object({
  agent: AgentSlug,
  message: Type.String({ minLength: 1, maxLength: bounds.bodyBytes }),
  sandboxId: Type.Optional({ ...SandboxId, description: 'Where it works; else a new sandbox is made.' }),
  threadId: Type.Optional({
    ...SandboxId,
    description: 'Conversation to go on with, of that sandbox; else a new one begins.',
    errorMessage: 'must be the id of a thread',
  }),
})

export const chatTools: readonly Tool[] = [
  tool({
    name: 'chat',
    title: 'Talk to an agent',
    description:
      'Gives a message to an agent in a sandbox and waits for its reply, which may take minutes. When it waits for a person to approve something, the status is "waiting".',
    input: Chat,
    isDestructive: true,
    isLong: true,
    run: talk,
  }),
]

interface Approval {
  approvalId: string
  tool: string
  input: unknown
  reason?: string
}

async function talk({ agent, message, ...place }: Static<typeof Chat>, call: Call): Promise<Outcome> {
  const { ask, signal } = call
  const body = { ...place, stream: 'full', messages: [{ role: 'user', parts: [{ type: 'text', text: message }] }] }
  const response = await assertDone(
    await ask({ method: 'POST', path: `/v1/chat/${agent}`, body, events: true, signal }),
  )
  const [sandboxId, threadId] = ['x-sandbox-id', 'x-thread-id'].map(name => response.headers.get(name) ?? '')
  try {
    const heard = await hear(response, call)
    signal.throwIfAborted()
    return outcomeOf(heard, { sandboxId, threadId })
  } catch (error) {
    if (signal.aborted) {
      // When a reader leaves, the reply goes on; cancelling the call ends it.
      const path = `/v1/chat/${agent}/${sandboxId}/stream?${new URLSearchParams({ threadId: threadId ?? '' })}`
      await ask({ method: 'DELETE', path, signal: new AbortController().signal })
    }
    throw error
  }
}

interface Heard {
  text: string
  isCut: boolean
  approvals: Approval[]
  status: unknown
  costUsd: unknown
  error: string | undefined
}

/** Reads a reply to its end: the text after its last tool call, and the questions that it asks. */
async function hear(response: Response, { tell }: Call): Promise<Heard> {
  const tools = new Map<string, Pick<Approval, 'tool' | 'input'>>()
  const approvals = new Map<string, Approval>()
  let text = createBoundedText(DEFAULT_CHARACTERS)
  let hasWorked = false
  let metadata: JsonObject | undefined
  let error: string | undefined
  for await (const chunk of eventsOf(response)) {
    const callId = String(chunk.toolCallId)
    switch (chunk.type) {
      case 'text-start':
        // Text from before a tool call is not the answer.
        if (hasWorked) text = createBoundedText(DEFAULT_CHARACTERS)
        else text.add('\n')
        hasWorked = false
        break
      case 'text-delta':
        text.add(String(chunk.delta))
        tell(text.text().trim().split('\n').at(-1) ?? '')
        break
      case 'tool-input-available':
        hasWorked = true
        tools.set(callId, { tool: String(chunk.toolName), input: chunk.input })
        tell(`uses ${chunk.toolName}`)
        break
      case 'tool-approval-request': {
        const asked = tools.get(callId) ?? { tool: '', input: null }
        const reason = typeof chunk.reason === 'string' ? { reason: chunk.reason } : {}
        approvals.set(callId, { approvalId: String(chunk.approvalId), ...asked, ...reason })
        break
      }
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        tools.delete(callId)
        approvals.delete(callId)
        break
      case 'message-metadata':
        metadata = objectOf(chunk.messageMetadata)
        break
      case 'error':
        error = String(chunk.errorText)
        break
    }
  }
  return {
    text: text.text().trim(),
    isCut: text.isCut,
    approvals: [...approvals.values()],
    status: metadata?.status ?? (error === undefined ? 'completed' : 'failed'),
    costUsd: metadata?.totalCostUsd ?? null,
    error,
  }
}

function outcomeOf({ text, isCut, approvals, status, costUsd, error }: Heard, ids: object): Outcome {
  const asked = approvals.map(({ approvalId, tool }) => `${approvalId}: ${tool}`)
  const lines = [
    text,
    ...(asked.length > 0 ? [`The agent waits for a person to approve:`, ...asked] : []),
    ...(error === undefined ? [] : [`error: ${error}`]),
    ...Object.entries(ids).map(([name, id]) => `${name}: ${id}`),
  ]
  return {
    text: lines.filter(line => line !== '').join('\n'),
    structured: {
      ...ids,
      status,
      reply: text,
      truncated: isCut,
      approvals,
      costUsd,
      ...(error !== undefined && { error }),
    },
    ...(status === 'completed' || status === 'waiting' ? {} : { isError: true as const }),
  }
}
