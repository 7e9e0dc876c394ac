import { DropdownMenu as Primitive } from 'radix-ui'
import { type ReactNode, useRef } from 'react'

export interface MenuItem {
  name: string
  isDanger?: boolean
  isDisabled?: boolean
  select: () => void
}

/** Shows a button that opens a list of actions. */
export function Menu({ label, children, items }: { label: string; children: ReactNode; items: readonly MenuItem[] }) {
  const trigger = useRef<HTMLButtonElement>(null)
  const chosen = useRef<() => void>(undefined)
  /** An action begins when the focus is back, because a dialog returns the focus to where it was. */
  const begin = () => {
    const select = chosen.current
    chosen.current = undefined
    if (!select) return
    trigger.current?.focus()
    select()
  }
  return (
    <Primitive.Root>
      <Primitive.Trigger ref={trigger} className="quiet icon" aria-label={label}>
        {children}
      </Primitive.Trigger>
      <Primitive.Portal>
        <Primitive.Content className="menu" align="end" sideOffset={4} onCloseAutoFocus={begin}>
          {items.map(({ name, isDanger, isDisabled, select }) => (
            <Primitive.Item
              key={name}
              className={isDanger ? 'danger' : ''}
              disabled={isDisabled ?? false}
              onSelect={() => {
                chosen.current = select
              }}
            >
              {name}
            </Primitive.Item>
          ))}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}
