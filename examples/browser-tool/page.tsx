import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls } from 'ai'
import { type FormEvent, useState } from 'react'
import { createRoot } from 'react-dom/client'

/** What the model may call beside the server's tools. The reply waits until the page has answered. */
const tools = {
  setBackground: {
    description: 'Sets the background of the page that the user looks at. Returns the color it had before.',
    inputSchema: {
      type: 'object',
      properties: { color: { type: 'string', description: 'A color of CSS.' } },
      required: ['color'],
    },
  },
}

function setBackground({ color }: { color: string }) {
  const { style } = document.body
  const before = style.backgroundColor || 'none'
  style.backgroundColor = color
  return { before }
}

/** The page's own server gives it a token; it never sees the API key. */
async function openTransport() {
  const { api, token } = await (await fetch('/token', { method: 'POST' })).json()
  return new DefaultChatTransport({ api, headers: { authorization: `Bearer ${token}` }, body: { tools } })
}

function Chat({ transport }: { transport: Awaited<ReturnType<typeof openTransport>> }) {
  const { messages, sendMessage, addToolOutput, status, error } = useChat({
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall({ toolCall: { toolName, toolCallId, input } }) {
      if (toolName !== 'setBackground') return
      // Not awaited: the output is taken when this function has returned.
      void addToolOutput({ tool: toolName, toolCallId, output: setBackground(input as { color: string }) })
    },
  })
  const [text, setText] = useState('')
  const send = (event: FormEvent) => {
    event.preventDefault()
    void sendMessage({ text })
    setText('')
  }
  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <article key={id} className={role}>
          {parts.map((part, index) => (part.type === 'text' ? <p key={`${id}-${index}`}>{part.text}</p> : null))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={event => setText(event.target.value)} />
        <button type="submit" disabled={status === 'submitted' || status === 'streaming'}>
          Send
        </button>
      </form>
    </main>
  )
}

const root = document.getElementById('root')
if (!root) throw new Error('the page has no element #root')
createRoot(root).render(<Chat transport={await openTransport()} />)
