import type { ReactNode } from 'react'

/** Holds content that is wider than the page, such as a table: it scrolls by itself, also by the keyboard. */
export function Scroll({
  label,
  className = '',
  children,
}: {
  label: string
  className?: string
  children: ReactNode
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: it groups no fields
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard has to reach it, to scroll it
    <div role="group" className={`scroll ${className}`} aria-label={label} tabIndex={0}>
      {children}
    </div>
  )
}
