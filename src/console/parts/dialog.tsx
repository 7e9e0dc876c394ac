import { Dialog as Primitive } from 'radix-ui'
import { type ReactNode, useRef } from 'react'

export interface DialogProps {
  title: string
  description?: string
  isOpen: boolean
  close: () => void
  children: ReactNode
}

/** A dialog over the page. Escape and a click beside it close it; focus returns to where it was. */
export function Dialog({ title, description, isOpen, close, children }: DialogProps) {
  const before = useRef<Element>(null)
  const remember = () => {
    before.current = document.activeElement
  }
  /** What opened it may be gone by what it did, as a row of a list: then the page has the focus. */
  const goBack = (event: Event) => {
    event.preventDefault()
    const { current } = before
    const target = current instanceof HTMLElement && current.isConnected ? current : document.getElementById('content')
    target?.focus()
  }
  return (
    <Primitive.Root open={isOpen} onOpenChange={open => !open && close()}>
      <Primitive.Portal>
        <Primitive.Overlay className="dialog-overlay" />
        <Primitive.Content
          className="dialog stack"
          onOpenAutoFocus={remember}
          onCloseAutoFocus={goBack}
          {...(!description && { 'aria-describedby': undefined })}
        >
          <Primitive.Title>{title}</Primitive.Title>
          {description && <Primitive.Description className="hint">{description}</Primitive.Description>}
          {children}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}
