import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport } from 'ai'
import { type FormEvent, useState } from 'react'
import { createRoot } from 'react-dom/client'

/** The page's own server gives it a token; it never sees the API key. */
async function openTransport() {
  const { api, token } = await (await fetch('/token', { method: 'POST' })).json()
  return new DefaultChatTransport({ api, headers: { authorization: `Bearer ${token}` } })
}

function Chat({ transport }: { transport: Awaited<ReturnType<typeof openTransport>> }) {
  const { messages, sendMessage, status, error } = useChat({ transport })
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
