import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { api, take } from '../api/client.ts'

const FRAGMENT = '#sign-in='

/** Exchanges a key, or the secret of a link, for the browser's session. */
export function SignIn() {
  const [key, setKey] = useState('')
  const queries = useQueryClient()
  const signIn = useMutation({
    mutationFn: (credential: { key: string } | { link: string }) => take(api.POST('/v1/session', { body: credential })),
    onSuccess: () => {
      // The data of another team's key must not be shown to this one.
      queries.removeQueries({ predicate: ({ queryKey: [first] }) => first !== 'session' })
      return queries.invalidateQueries({ queryKey: ['session'] })
    },
  })
  const { mutate } = signIn
  useEffect(() => {
    const link = location.hash.startsWith(FRAGMENT) ? location.hash.slice(FRAGMENT.length) : undefined
    if (link === undefined) return
    // A secret can be used once, and must not stay in the history.
    history.replaceState(null, '', location.pathname)
    mutate({ link })
  }, [mutate])

  return (
    <main className="sign-in">
      <form
        className="card stack"
        onSubmit={event => {
          event.preventDefault()
          mutate({ key: key.trim() })
        }}
      >
        <h1>threadbox</h1>
        {/* For password managers, which keep a key under a name. */}
        <input type="text" name="username" autoComplete="username" value="threadbox" readOnly hidden />
        <label className="field">
          <span>API key</span>
          <input
            type="password"
            name="key"
            autoComplete="current-password"
            required
            placeholder="tbx_…"
            value={key}
            onChange={event => setKey(event.target.value)}
          />
        </label>
        {signIn.error && (
          <p role="alert" className="problem">
            {signIn.error.message}
          </p>
        )}
        <button type="submit" className="primary" disabled={signIn.isPending}>
          Sign in
        </button>
        <p className="hint">
          The key is changed for a cookie and is not kept. On the server, <code>threadbox keys create</code> makes one.
        </p>
      </form>
    </main>
  )
}
