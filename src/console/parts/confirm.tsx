import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Dialog } from './dialog.tsx'
import { Problem } from './problem.tsx'

export interface ConfirmProps {
  /** The text of the button that asks. */
  children: ReactNode
  title: string
  description: string
  /** The text of the button that acts. */
  action: string
  className?: string
  run: () => Promise<unknown>
}

/** Shows a button for an action that cannot be undone, which asks first. */
export function Confirm({ children, title, description, action, className = 'danger', run }: ConfirmProps) {
  const [isOpen, setOpen] = useState(false)
  const work = useMutation({ mutationFn: run, onSuccess: () => setOpen(false) })
  return (
    <>
      <button type="button" className={className} onClick={() => setOpen(true)}>
        {children}
      </button>
      <Dialog title={title} description={description} isOpen={isOpen} close={() => setOpen(false)}>
        {work.error && <Problem error={work.error} />}
        <div className="row end">
          <button type="button" onClick={() => setOpen(false)}>
            Cancel
          </button>
          <button type="button" className="primary" disabled={work.isPending} onClick={() => work.mutate()}>
            {action}
          </button>
        </div>
      </Dialog>
    </>
  )
}
