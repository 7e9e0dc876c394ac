import type { ReactNode } from 'react'

/** What is wider than the page, as a table is: it scrolls by itself, by the keyboard too. */
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
