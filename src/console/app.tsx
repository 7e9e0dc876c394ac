import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api, RequestError, take } from './api/client.ts'
import { Shell } from './shell/shell.tsx'
import { SignIn } from './sign-in/sign-in.tsx'

/** Shows the console to people who are signed in, and the way in to others. */
export function App() {
  const session = useQuery({ queryKey: ['session'], queryFn: () => take(api.GET('/v1/session')), staleTime: Infinity })
  const isSignedIn = session.data !== undefined && session.data.caller !== null
  useEffect(() => {
    // This browser does not need the link, whose secret may still be used by others.
    if (isSignedIn && location.hash.startsWith('#sign-in=')) history.replaceState(null, '', location.pathname)
  }, [isSignedIn])
  if (session.isPending) return null
  if (session.error instanceof RequestError && [401, 403].includes(session.error.status)) return <SignIn />
  if (session.isSuccess && !isSignedIn) return <SignIn />
  // A failure that may pass does not remove what is shown.
  if (session.error && !session.data) return <p role="alert">{session.error.message}</p>
  return <Shell />
}
