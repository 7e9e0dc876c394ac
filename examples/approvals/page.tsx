import { useChat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai'
import { type FormEvent, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'

/** The page's own server gives it a token, which may answer; it never sees the API key. */
const { server, agent, token } = await (await fetch('/token', { method: 'POST' })).json()
const api = `${server}/v1/chat/${agent}`
const headers = { authorization: `Bearer ${token}` }

/** Where the conversation is stands in the page's address, so that it is there again after a reload. */
interface Place {
  sandboxId: string
  threadId: string
}
const [, sandboxId, threadId] = /^#(.+)\/(.+)$/.exec(location.hash) ?? []
const path = `${server}/v1/sandboxes/${sandboxId}/threads/${threadId}`
const stored: UIMessage[] = threadId ? (await (await fetch(path, { headers })).json()).messages : []

// "full" has the chunks that ask for approvals.
const body = { stream: 'full', ...(threadId && { sandboxId, threadId }) }
const transport = new DefaultChatTransport({ api, headers, body })

function Chat() {
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    ...(threadId && { id: threadId }),
    messages: stored,
    resume: threadId !== undefined,
    transport,
    // Posts the answers when the reply has no open question any more.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const [text, setText] = useState('')
  const place = messages.at(-1)?.metadata as Place | undefined
  useEffect(() => {
    if (place) location.hash = `${place.sandboxId}/${place.threadId}`
  }, [place])
  const send = (event: FormEvent) => {
    event.preventDefault()
    void sendMessage({ text })
    setText('')
  }
  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <article key={id} className={role}>
          {parts.map((part, index) => {
            const key = `${id}-${index}`
            if (part.type === 'text') return <p key={key}>{part.text}</p>
            if (!isToolUIPart(part)) return null
            const { approval } = part
            const answer = (approved: boolean) => approval && addToolApprovalResponse({ id: approval.id, approved })
            return (
              <div key={key}>
                <pre>{JSON.stringify(part.input)}</pre>
                <small>{part.state}</small>
                {part.state === 'approval-requested' && (
                  <>
                    <button type="button" onClick={() => void answer(true)}>
                      Approve
                    </button>
                    <button type="button" onClick={() => void answer(false)}>
                      Deny
                    </button>
                  </>
                )}
              </div>
            )
          })}
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
createRoot(root).render(<Chat />)
