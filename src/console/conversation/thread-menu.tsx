import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { api, take } from '../api/client.ts'
import { whileDeleting } from '../api/deleting.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Menu } from '../parts/menu.tsx'
import { Problem } from '../parts/problem.tsx'
import type { ThreadPlace } from './place.ts'

/** What can be done with a conversation as a whole. */
export function ThreadMenu({ place: { sandboxId, threadId }, name }: { place: ThreadPlace; name: string }) {
  const [asked, setAsked] = useState<'rename' | 'delete'>()
  const [wanted, setWanted] = useState(name)
  const [, go] = useLocation()
  const queries = useQueryClient()
  const path = { sandboxId, threadId }
  const close = () => setAsked(undefined)
  const renaming = useMutation({
    mutationFn: () =>
      take(api.PATCH('/v1/sandboxes/{sandboxId}/threads/{threadId}', { params: { path }, body: { name: wanted } })),
    onSuccess: () => {
      close()
      return queries.invalidateQueries({ queryKey: ['thread', threadId] })
    },
  })
  const deleting = useMutation({
    mutationFn: () =>
      whileDeleting(threadId, async () => {
        await take(api.DELETE('/v1/sandboxes/{sandboxId}/threads/{threadId}', { params: { path } }))
        go('/threads')
      }),
  })
  return (
    <>
      <Menu
        label="More about this thread"
        items={[
          {
            name: 'Rename',
            select: () => {
              setWanted(name)
              setAsked('rename')
            },
          },
          { name: 'Delete', isDanger: true, select: () => setAsked('delete') },
        ]}
      >
        <span aria-hidden="true">⋯</span>
      </Menu>
      <Dialog title="Rename this thread" isOpen={asked === 'rename'} close={close}>
        <form
          className="stack"
          onSubmit={event => {
            event.preventDefault()
            renaming.mutate()
          }}
        >
          <label className="field">
            <span>Name</span>
            <input required maxLength={1000} value={wanted} onChange={event => setWanted(event.target.value)} />
          </label>
          {renaming.error && <Problem error={renaming.error} />}
          <div className="row end">
            <button type="submit" className="primary" disabled={renaming.isPending}>
              Rename
            </button>
          </div>
        </form>
      </Dialog>
      <Dialog
        title="Delete this thread?"
        description="Its messages are gone then. The sandbox and its files stay."
        isOpen={asked === 'delete'}
        close={close}
      >
        {deleting.error && <Problem error={deleting.error} />}
        <div className="row end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="button" className="primary" disabled={deleting.isPending} onClick={() => deleting.mutate()}>
            Delete
          </button>
        </div>
      </Dialog>
    </>
  )
}
