import { Dialog as Primitive } from 'radix-ui'
import { type ReactNode, useRef } from 'react'

export interface DialogProps {
  title: string
  description?: string
  isOpen: boolean
  close: () => void
  children: ReactNode
}

/** Shows a dialog over the page. Escape and a click beside it close it; the focus then returns to where it was. */
export function Dialog({ title, description, isOpen, close, children }: DialogProps) {
  const before = useRef<Element>(null)
  const remember = () => {
    before.current = document.activeElement
  }
  /** The element that opened the dialog may be gone by the dialog's action, such as a row of a list: then the page gets the focus. */
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
