import { useMutation, useQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { api, refusalOf, take } from '../../api/client.ts'
import { bytes } from '../../parts/format.ts'
import { Problem } from '../../parts/problem.tsx'
import { rawUrl } from './paths.ts'

/** A longer text is only for download. */
const MAX_TEXT_BYTES = 1024 * 1024
const IMAGE = /\.(png|jpe?g|gif|webp|avif)$/i
const SVG = /\.svg$/i

type Content = { kind: 'text'; text: string } | { kind: 'binary'; size: number }

async function readContent(sandboxId: string, path: string): Promise<Content> {
  const { size } = await take(
    api.GET('/v1/sandboxes/{sandboxId}/files/info', { params: { path: { sandboxId }, query: { path } } }),
  )
  if (size > MAX_TEXT_BYTES) return { kind: 'binary', size }
  const response = await fetch(rawUrl(sandboxId, path))
  if (!response.ok) throw await refusalOf(response)
  const content = await response.bytes()
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(content) }
  } catch {
    return { kind: 'binary', size }
  }
}

/**
 * Shows a file: a text to edit, an image, or its size. An image is drawn as an image, never as a document, so that scripts in an SVG do
 * not run. The server gives files no type, which an SVG needs; at a `data:` address it is not a document of this origin either.
 */
export function FileView({ sandboxId, path, close }: { sandboxId: string; path: string; close: () => void }) {
  const isImage = IMAGE.test(path)
  const content = useQuery({
    queryKey: ['file', sandboxId, path],
    queryFn: () => readContent(sandboxId, path),
    enabled: !isImage,
  })
  const [draft, setDraft] = useState<string>()
  const editor = useRef<HTMLTextAreaElement>(null)
  const saving = useMutation({
    mutationFn: (text: string) =>
      take(
        api.POST('/v1/sandboxes/{sandboxId}/files', { params: { path: { sandboxId } }, body: { path, content: text } }),
      ),
    onSuccess: async () => {
      await content.refetch()
      setDraft(undefined)
      // The pressed button goes away.
      editor.current?.focus()
    },
  })
  const problem = content.error ?? saving.error
  const text = content.data?.kind === 'text' ? content.data.text : undefined
  return (
    <section className="card stack" aria-label={path}>
      <div className="row spread">
        <h2 className="cut mono grow">{path}</h2>
        {draft !== undefined && (
          <button type="button" className="primary" disabled={saving.isPending} onClick={() => saving.mutate(draft)}>
            Save
          </button>
        )}
        <a className="button" href={rawUrl(sandboxId, path)} download={path.split('/').at(-1)}>
          Download
        </a>
        <button type="button" className="quiet" onClick={close}>
          Close
        </button>
      </div>
      {problem && <Problem error={problem} />}
      {text !== undefined && SVG.test(path) && (
        <img className="shown" src={`data:image/svg+xml,${encodeURIComponent(text)}`} alt={path} />
      )}
      {isImage && <img className="shown" src={rawUrl(sandboxId, path)} alt={path} />}
      {content.data?.kind === 'binary' && (
        <p className="hint">{bytes(content.data.size)} that are no text to show here.</p>
      )}
      {text !== undefined && (
        <textarea
          ref={editor}
          className="mono editor"
          aria-label={`Text of ${path}`}
          spellCheck={false}
          value={draft ?? text}
          onChange={event => setDraft(event.target.value)}
        />
      )}
    </section>
  )
}
