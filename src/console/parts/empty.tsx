import type { ReactNode } from 'react'

/** Stands in an empty list: it says what the list would show, and how that gets there. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children && <p className="hint">{children}</p>}
    </div>
  )
}
