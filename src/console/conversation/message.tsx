import { memo, useState } from 'react'
import { Fence } from '../parts/fence.tsx'
import { Branches } from './branches.tsx'
import type { ChatMessage } from './chat-message.ts'
import { MessagePart } from './message-part.tsx'
import type { ThreadPlace } from './place.ts'
import { RunLink } from './run-link.tsx'
import { Spent } from './spent.tsx'
import { textOf } from './text-of.ts'
import { useNear } from './use-near.ts'

export interface MessageProps {
  place: ThreadPlace
  message: ChatMessage
  /** Whether the message is being written now. */
  isLive: boolean
  /** Whether a reply of the thread is being written. */
  isBusy: boolean
  /** Whether the message is old: then it is drawn only while it is near the screen. */
  isOld: boolean
  edit: (messageId: string, text: string) => void
  regenerate: (messageId: string) => void
  refresh: () => Promise<void>
}

/** One message, with what can be done with it. Drawn anew only when it changes: a conversation may have thousands. */
export const Message = memo(function Message(props: MessageProps) {
  const { place, message, isLive, isBusy, isOld, edit, regenerate, refresh } = props
  const { id, role, parts, metadata } = message
  const { box, isNear, heightPx } = useNear(isOld)
  const [draft, setDraft] = useState<string>()
  const isUser = role === 'user'
  return (
    <article
      ref={box}
      className={`message ${role} ${isNear ? '' : 'far'}`}
      style={{ height: heightPx }}
      aria-label={isUser ? 'You' : 'Agent'}
      aria-live={isLive ? 'polite' : undefined}
    >
      {draft === undefined ? (
        isNear &&
        parts.map((part, index) => (
          // Parts only ever come after the ones that are there.
          // biome-ignore lint/suspicious/noArrayIndexKey: a part has no id, and keeps its place
          <Fence key={index} what="A part of this message">
            <MessagePart place={place} part={part} isLive={isLive} isUser={isUser} refresh={refresh} />
          </Fence>
        ))
      ) : (
        <form
          className="stack"
          onSubmit={event => {
            event.preventDefault()
            setDraft(undefined)
            edit(id, draft)
          }}
        >
          <label className="field">
            <span>Your message</span>
            <textarea required rows={3} value={draft} onChange={event => setDraft(event.target.value)} />
          </label>
          <div className="row end">
            <button type="button" onClick={() => setDraft(undefined)}>
              Cancel
            </button>
            <button type="submit" className="primary">
              Send again
            </button>
          </div>
        </form>
      )}
      {isNear && !isLive && draft === undefined && (
        <footer className="row hint">
          {isUser ? (
            <button type="button" className="quiet small" disabled={isBusy} onClick={() => setDraft(textOf(parts))}>
              Edit
            </button>
          ) : (
            <button type="button" className="quiet small" disabled={isBusy} onClick={() => regenerate(id)}>
              Regenerate
            </button>
          )}
          <Branches place={place} message={message} isBusy={isBusy} refresh={refresh} />
          {!isUser && <Spent metadata={metadata} />}
          {!isUser && <RunLink place={place} metadata={metadata} />}
        </footer>
      )}
    </article>
  )
})
