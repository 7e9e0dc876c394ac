import { useChat } from '@ai-sdk/react'
import type { UIMessage } from 'ai'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { Schemas } from '../api/client.ts'
import { type TeamEvent, useEachEvent } from '../api/team-events.ts'
import { Problem } from '../parts/problem.tsx'
import type { ChatMessage } from './chat-message.ts'
import { Composer } from './composer.tsx'
import { Message } from './message.tsx'
import type { ThreadPlace } from './place.ts'
import { Queue } from './queue.tsx'
import { cancelReply, createTransport, sendBeside } from './transport.ts'
import { useFollowEnd } from './use-follow-end.ts'
import { useScrollAnchor } from './use-scroll-anchor.ts'
import { PAGE, readEarlier } from './use-thread.ts'
import { withEarlier } from './with-earlier.ts'

type Thread = Schemas['Thread']
const isAsking = (message: UIMessage | undefined) =>
  message?.parts.some(part => 'state' in part && part.state === 'approval-requested') ?? false

export interface ChatProps {
  place: ThreadPlace
  thread: Thread
  /** Reads the thread again. */
  reload: () => Promise<{ data?: Thread | undefined }>
}

/** The conversation, and what a person can do in it. */
export function Chat({ place, thread, reload }: ChatProps) {
  const transport = useMemo(() => createTransport(place), [place])
  const [hasEarlier, setEarlier] = useState(Boolean(thread.nextBefore))
  const chat = useChat<ChatMessage>({
    id: place.threadId,
    messages: thread.messages as ChatMessage[],
    resume: thread.status === 'streaming',
    transport,
  })
  const { messages, setMessages, status, resumeStream, sendMessage, regenerate: again, stop } = chat
  const isBusy = status === 'streaming' || status === 'submitted'
  const latest = useRef({ messages, isBusy })
  latest.current = { messages, isBusy }

  /** Shows what the server has; a reply that goes on is followed. */
  const refresh = useCallback(async () => {
    const { data } = await reload()
    if (!data) return
    const messages = withEarlier(latest.current.messages, data.messages as ChatMessage[])
    setMessages(messages)
    if (messages.length === data.messages.length) setEarlier(Boolean(data.nextBefore))
    if (data.status === 'streaming') void resumeStream()
  }, [reload, setMessages, resumeStream])

  // Others may answer, send and edit: their runs are seen here too.
  useEachEvent(
    useCallback(
      ({ type, threadId }: TeamEvent) => {
        if (threadId !== place.threadId || latest.current.isBusy) return
        if (type === 'run.started' || type === 'run.ended' || type === 'approval.decided') void refresh()
      },
      [place.threadId, refresh],
    ),
  )
  // A reply that waits ends for the moment, and the ids and the branches of a turn are the server's.
  const wasBusy = useRef(false)
  useEffect(() => {
    if (wasBusy.current && status === 'ready' && !isAsking(latest.current.messages.at(-1))) void refresh()
    wasBusy.current = isBusy
  }, [isBusy, status, refresh])

  const end = useFollowEnd()
  const holdPlace = useScrollAnchor(end, messages)
  const showEarlier = async () => {
    const first = messages[0]
    if (!first) return
    const page = await readEarlier(place, first.id)
    holdPlace()
    setMessages([...(page.messages as ChatMessage[]), ...latest.current.messages])
    setEarlier(Boolean(page.nextBefore))
  }
  const edit = useCallback((messageId: string, text: string) => void sendMessage({ text, messageId }), [sendMessage])
  const regenerate = useCallback((messageId: string) => void again({ messageId }), [again])
  const cancel = async () => {
    await cancelReply(place)
    await stop()
  }

  return (
    <>
      <div ref={end} className="messages" role="log" aria-label="Messages" aria-busy={isBusy}>
        {hasEarlier && (
          <button type="button" className="earlier" onClick={() => void showEarlier()}>
            Show earlier messages
          </button>
        )}
        {messages.map((message, index) => (
          <Message
            key={message.id}
            place={place}
            message={message}
            isLive={isBusy && message === messages.at(-1)}
            isOld={index < messages.length - PAGE}
            edit={edit}
            regenerate={regenerate}
            refresh={refresh}
            isBusy={isBusy}
          />
        ))}
        {status === 'submitted' && <p className="hint">The agent begins…</p>}
      </div>
      {chat.error && <Problem error={chat.error} retry={() => void refresh()} />}
      <Queue place={place} waiting={thread.queue ?? []} refresh={refresh} />
      <Composer
        isBusy={isBusy}
        send={message => void sendMessage(message)}
        sendBeside={async (whenBusy, message) => {
          await sendBeside(place, whenBusy, message)
          await reload()
        }}
        cancel={cancel}
      />
    </>
  )
}
