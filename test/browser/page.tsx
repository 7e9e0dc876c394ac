// A page of an app: `useChat` and buttons. What it is to do stands in its address, so that a reload is the same page again.
import { useChat } from '@ai-sdk/react'
import * as ai from 'ai'
import { type ReactNode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import type { PageOptions } from './browser.ts'

const options: PageOptions = JSON.parse(decodeURIComponent(location.hash.slice(1)))
const { server, agent, token, sandboxId, threadId, body = {}, automatic } = options
const api = `${server}/v1/chat/${agent}`
const headers = { authorization: `Bearer ${token}` }

const transport = new ai.DefaultChatTransport<ai.UIMessage>({ api, headers, body: { sandboxId, threadId, ...body } })

/** The messages that the thread has. */
async function stored(): Promise<ai.UIMessage[]> {
  const answer = await fetch(`${server}/v1/sandboxes/${sandboxId}/threads/${threadId}`, { headers })
  return (await answer.json()).messages
}

const whenComplete = {
  tools: ai.lastAssistantMessageIsCompleteWithToolCalls,
}

function Chat({ messages: initial }: { messages: ai.UIMessage[] }) {
  const [text, setText] = useState('')
  const chat = useChat({
    id: threadId,
    messages: initial,
    resume: true,
    transport,
    ...(automatic && { sendAutomaticallyWhen: whenComplete[automatic] }),
  })
  /** It ends the reply for every reader; chat.stop() would only close the page's own request. */
  const stop = () => fetch(`${api}/${threadId}/stream`, { method: 'DELETE', headers })
  const button = (name: string, act: () => unknown) => (
    <button type="button" onClick={() => void act()}>
      {name}
    </button>
  )
  return (
    <main data-status={chat.status}>
      {chat.messages.map(message => (
        <article key={message.id} data-id={message.id} data-role={message.role}>
          {message.parts.map((part, index) => (
            <Part key={`${message.id} ${index}`} part={part} />
          ))}
          {message.role === 'user'
            ? button('Edit', () => chat.sendMessage({ text, messageId: message.id }))
            : button('Regenerate', () => chat.regenerate({ messageId: message.id }))}
        </article>
      ))}
      {chat.error && <p role="alert">{chat.error.message}</p>}
      <input aria-label="Message" value={text} onChange={event => setText(event.target.value)} />
      {button('Send', () => chat.sendMessage({ text }))}
      {button('Stop', stop)}
    </main>
  )
}

/** What the tests read: `data-shown`, a line for each part. */
function Part({ part }: { part: ai.UIMessagePart<ai.UIDataTypes, ai.UITools> }): ReactNode {
  if (part.type === 'text') return <p data-shown={part.text}>{part.text}</p>
  if (!part.type.startsWith('tool-') || !('state' in part)) return null
  const result = 'output' in part && part.output !== undefined ? part.output : 'errorText' in part ? part.errorText : ''
  const shown = `[${part.type.slice('tool-'.length)} ${part.state}${result ? `: ${String(result).trim()}` : ''}]`
  return <pre data-shown={shown}>{shown}</pre>
}

const root = document.getElementById('root')
if (!root) throw new Error('the page has no element #root')
createRoot(root).render(<Chat messages={await stored()} />)
