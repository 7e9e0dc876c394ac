import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { useLocation } from 'wouter'
import { api, take } from '../api/client.ts'
import { createSandbox, type Isolation } from '../api/create-sandbox.ts'
import { useCreating } from './creating.tsx'

export interface Choice {
  agent: string
  /** The sandbox; by default a new one. */
  sandboxId?: string
  /** The least isolation of a new sandbox. */
  isolation?: Isolation
}

/** Begins a conversation and goes there, saying how far its sandbox is. Leaving the page ends a create that goes on. */
export function useBeginning() {
  const [, go] = useLocation()
  const { creating, onStep, reset } = useCreating()
  const leaving = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => leaving.current?.abort(), [])
  const { mutate, isPending, variables, error } = useMutation({
    mutationFn: async ({ agent, isolation, sandboxId: given }: Choice) => {
      const abort = new AbortController()
      leaving.current = abort
      reset()
      const sandbox = given ?? (await createSandbox({ agent, ...(isolation && { isolation }) }, onStep, abort.signal))
      const path = { sandboxId: sandbox }
      const { id } = await take(api.POST('/v1/sandboxes/{sandboxId}/threads', { params: { path }, body: {} }))
      return `/sandboxes/${sandbox}/threads/${id}`
    },
    onSuccess: address => go(address),
  })
  return {
    begin: (choice: Choice) => mutate(choice),
    isPending,
    isCreating: isPending && !variables.sandboxId,
    creating,
    cancel: () => leaving.current?.abort(),
    // When the user cancels, that is not a failure.
    problem: error?.name === 'AbortError' ? null : error,
  }
}
