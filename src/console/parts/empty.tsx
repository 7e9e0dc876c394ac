import type { ReactNode } from 'react'

/** Where a list has nothing: what would be here, and how it gets here. */
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
