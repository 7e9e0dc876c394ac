// A page of an app: `useChat` and buttons. What it is to do stands in its address, so that a reload is the same page again.
import { useChat } from '@ai-sdk/react'
import * as ai from 'ai'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { createRoot } from 'react-dom/client'
import type { PageOptions } from './browser.ts'

const options: PageOptions = JSON.parse(decodeURIComponent(location.hash.slice(1)))
const { server, agent, token, sandboxId, threadId, body = {}, automatic, watches = false } = options
const api = `${server}/v1/chat/${agent}`
const headers = { authorization: `Bearer ${token}` }

const transport = new ai.DefaultChatTransport<ai.UIMessage>({ api, headers, body: { sandboxId, threadId, ...body } })

interface Thread {
  status: string
  messages: (ai.UIMessage & { branch?: string; branches?: string[] })[]
  queue?: { id: string; parts: { text: string }[] }[]
}

async function call(method: string, path: string, json?: object) {
  const body = json && JSON.stringify(json)
  const answer = await fetch(`${server}${path}`, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body }),
  })
  if (!answer.ok) throw new Error(await answer.text())
  return answer.json()
}
const pathOfThread = `/v1/sandboxes/${sandboxId}/threads/${threadId}`
const readThread = (): Promise<Thread> => call('GET', pathOfThread)

const { lastAssistantMessageIsCompleteWithToolCalls: hasOutputs } = ai
const hasAnswers = (state: { messages: ai.UIMessage[] }) =>
  ai.lastAssistantMessageIsCompleteWithApprovalResponses(state)
const waitsForPerson = (message: ai.UIMessage | undefined) =>
  message?.parts.some(part => 'state' in part && part.state === 'approval-requested') ?? false
const isComplete = {
  tools: hasOutputs,
  approvals: hasAnswers,
  // The first of the two does not see the server's calls, and would post while one of them still waits.
  both: (state: { messages: ai.UIMessage[] }) =>
    !waitsForPerson(state.messages.at(-1)) && (hasOutputs(state) || hasAnswers(state)),
}

function Chat({ thread }: { thread: Thread }) {
  const [text, setText] = useState('')
  const [queue, setQueue] = useState(thread.queue ?? [])
  const chat = useChat({
    id: threadId,
    messages: thread.messages,
    resume: true,
    transport,
    ...(automatic && { sendAutomaticallyWhen: isComplete[automatic] }),
    onToolCall: ({ toolCall: { toolName, toolCallId } }) => {
      if (toolName !== 'PageTitle') return
      // A call that is executed twice, over a reload too, is seen by its output.
      const times = Number(sessionStorage.getItem(toolCallId) ?? 0) + 1
      sessionStorage.setItem(toolCallId, String(times))
      void answer(toolName, toolCallId, { output: `${document.title}${'!'.repeat(times)}` })
    },
  })
  /** Not to be awaited in `onToolCall`: the output is taken after it has returned. Version 5 began with addToolResult. */
  const answer = (tool: string, toolCallId: string, result: { output: unknown } | { errorText: string }) => {
    const state = 'output' in result ? undefined : ('output-error' as const)
    return (chat.addToolOutput ?? chat.addToolResult)({ tool, toolCallId, state, ...result } as never)
  }
  const show = (found: Thread) => {
    setQueue(found.queue ?? [])
    chat.setMessages(found.messages)
    if (found.status === 'streaming') void resume()
  }
  const latest = useRef(chat.messages)
  latest.current = chat.messages
  /** The reply may have ended between the look at the thread and this: then the thread has it. */
  const resume = async () => {
    await chat.resumeStream()
    if (latest.current.at(-1)?.role === 'user') show(await readThread())
  }

  // Others may answer what waits, and queued messages get their turn: the page asks the thread, and comes back to the reply.
  const isWaiting = (watches && waitsForPerson(chat.messages.at(-1))) || queue.length > 0
  useEffect(() => {
    if (!isWaiting || chat.status !== 'ready') return
    let isOver = false
    const look = async () => {
      const found = await readThread()
      if (isOver || found.status === 'waiting') return
      isOver = true
      show(found)
    }
    const timer = setInterval(look, 50)
    return () => {
      isOver = true
      clearInterval(timer)
    }
  })

  /** A message beside the reply that is under way. */
  const sendBeside = async (whenBusy: 'queue' | 'steer') => {
    const id = crypto.randomUUID()
    const messages = [{ id, role: 'user', parts: [{ type: 'text', text }] }]
    await call('POST', `/v1/chat/${agent}`, { sandboxId, threadId, ...body, whenBusy, messages })
    setQueue((await readThread()).queue ?? [])
  }
  const button = (name: string, act: () => unknown) => (
    <button key={name} type="button" onClick={() => void act()}>
      {name}
    </button>
  )
  const buttonsOf = (part: ai.UIMessagePart<ai.UIDataTypes, ai.UITools>): ReactNode => {
    if (!ai.isToolUIPart(part)) return null
    if (part.state === 'approval-requested') {
      const { id } = part.approval
      return [
        button('Approve', () => chat.addToolApprovalResponse({ id, approved: true })),
        button('Deny', () => chat.addToolApprovalResponse({ id, approved: false, ...(text && { reason: text }) })),
      ]
    }
    if (part.state !== 'input-available' || part.providerExecuted) return null
    const tool = part.type.slice('tool-'.length)
    return [
      button('Answer', () => answer(tool, part.toolCallId, { output: text })),
      button('Refuse', () => answer(tool, part.toolCallId, { errorText: text })),
    ]
  }
  const switchTo = async (branch: string) => {
    await call('PATCH', pathOfThread, { branch })
    show(await readThread())
  }

  return (
    <main data-status={chat.status}>
      {(chat.messages as Thread['messages']).map(message => (
        <article key={message.id} data-id={message.id} data-role={message.role}>
          {message.parts.map((part, index) => (
            <div key={`${message.id} ${index}`} data-shown={describe(part)}>
              {describe(part)}
              {buttonsOf(part)}
            </div>
          ))}
          {message.role === 'user'
            ? button('Edit', () => chat.sendMessage({ text, messageId: message.id }))
            : button('Regenerate', () => chat.regenerate({ messageId: message.id }))}
          {message.branches?.map((branch, index) => button(`Branch ${index + 1}`, () => switchTo(branch)))}
        </article>
      ))}
      {queue.map(({ id, parts }) => (
        <article key={id} data-role="queued">
          <div data-shown={parts[0]?.text}>{parts[0]?.text}</div>
          {button('Take back', async () => {
            await fetch(`${server}${pathOfThread}/queue/${id}`, { method: 'DELETE', headers })
            setQueue((await readThread()).queue ?? [])
          })}
        </article>
      ))}
      {chat.error && <p role="alert">{chat.error.message}</p>}
      <textarea aria-label="Message" value={text} onChange={event => setText(event.target.value)} />
      {button('Send', () => chat.sendMessage({ text }))}
      {button('Queue', () => sendBeside('queue'))}
      {button('Steer', () => sendBeside('steer'))}
      {/* Ends the reply for every reader; chat.stop() would only close the page's own request. */}
      {button('Stop', () => fetch(`${api}/${threadId}/stream`, { method: 'DELETE', headers }))}
    </main>
  )
}

/** What the tests read of a part; empty for one that has nothing to see. */
function describe(part: ai.UIMessagePart<ai.UIDataTypes, ai.UITools>): string {
  if (part.type === 'text') return part.text
  if (part.type === 'steering-message') return `(steered: ${part.parts.map(describe).join(' ')})`
  if (!ai.isToolUIPart(part)) return ''
  const result = part.state === 'output-available' ? part.output : part.state === 'output-error' ? part.errorText : ''
  return `[${part.type.slice('tool-'.length)} ${part.state}${result ? `: ${String(result).trim()}` : ''}]`
}

const root = document.getElementById('root')
if (!root) throw new Error('the page has no element #root')
createRoot(root).render(<Chat thread={await readThread()} />)
