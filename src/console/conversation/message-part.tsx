import { isToolUIPart, type UIMessage } from 'ai'
import { lazy, memo, Suspense } from 'react'
import type { ThreadPlace } from './place.ts'
import { ToolCall } from './tool-call.tsx'

/** Markdown and highlighting are loaded with the first reply. */
const Markdown = lazy(() => import('../parts/markdown.tsx'))

export interface MessagePartProps {
  place: ThreadPlace
  part: UIMessage['parts'][number]
  isLive: boolean
  isUser: boolean
  refresh: () => Promise<void>
}

/** One part of a message, by its kind; others are not shown. It is drawn again only when it changes, not with each word of a later one. */
export const MessagePart = memo(function MessagePart({ place, part, isLive, isUser, refresh }: MessagePartProps) {
  if (part.type === 'text') {
    if (isUser) return <p className="said">{part.text}</p>
    return (
      <Suspense fallback={<p className="said">{part.text}</p>}>
        <Markdown text={part.text} />
      </Suspense>
    )
  }
  if (part.type === 'reasoning') {
    if (part.text === '') return null
    return (
      <details className="reasoning" open={isLive && part.state === 'streaming'}>
        <summary>Reasoning</summary>
        <p className="said">{part.text}</p>
      </details>
    )
  }
  if (part.type === 'file') return <Attachment {...part} />
  if (part.type === 'source-url') {
    return (
      <p>
        <a href={safe(part.url)} target="_blank" rel="noopener noreferrer nofollow">
          {part.title ?? part.url}
        </a>
      </p>
    )
  }
  if (isToolUIPart(part)) return <ToolCall place={place} part={part} isLive={isLive} refresh={refresh} />
  return null
})

/** No address but of the web becomes a link. */
const safe = (url: string): string | undefined => (/^https?:\/\//i.test(url) ? url : undefined)

/** Images of the reply itself are shown; nothing is loaded from other hosts. SVG only as a file, which is no document of the page. */
function Attachment({ mediaType, url, filename }: { mediaType: string; url: string; filename?: string | undefined }) {
  if (!url.startsWith('data:')) return <p className="hint">{filename ?? url}</p>
  if (/^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/.test(mediaType))
    return <img className="attachment" src={url} alt={filename ?? 'An attached image'} />
  return (
    <a href={url} download={filename ?? 'file'}>
      {filename ?? mediaType}
    </a>
  )
}
