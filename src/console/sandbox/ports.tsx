import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api, take } from '../api/client.ts'
import { Problem } from '../parts/problem.tsx'
import { Time } from '../parts/time.tsx'

const MAX_PORT = 65_535

/**
 * Shows a server of the sandbox in a frame, and makes links for others. A page in the frame has no origin, so it cannot reach this page.
 */
export default function Ports({ sandboxId }: { sandboxId: string }) {
  const [port, setPort] = useState('8000')
  const linking = useMutation({
    mutationFn: () =>
      take(
        api.POST('/v1/sandboxes/{sandboxId}/ports/{port}/link', { params: { path: { sandboxId, port } }, body: {} }),
      ),
  })
  const link = linking.data
  return (
    <div className="stack">
      <form
        className="card row"
        onSubmit={event => {
          event.preventDefault()
          linking.mutate()
        }}
      >
        <label className="field">
          <span>Port of a server inside</span>
          <input
            type="number"
            required
            min={1}
            max={MAX_PORT}
            value={port}
            onChange={event => setPort(event.target.value)}
          />
        </label>
        <button type="submit" className="primary" disabled={linking.isPending}>
          Show
        </button>
      </form>
      {linking.error && <Problem error={linking.error} />}
      {link && (
        <>
          <p className="row">
            <a href={link.url} target="_blank" rel="noopener noreferrer">
              Open it in a tab
            </a>
            <span className="hint">
              Whoever has this link sees the port; it ends <Time at={link.expiresAt} />.
            </span>
          </p>
          <iframe
            key={link.url}
            className="preview"
            title={`Port ${port} of the sandbox`}
            src={new URL(link.url, location.href).pathname}
            sandbox="allow-scripts allow-forms allow-popups allow-downloads"
          />
        </>
      )}
    </div>
  )
}
