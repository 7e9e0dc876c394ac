import type { ReactNode } from 'react'
import { Link } from 'wouter'

/** One figure, and what is behind it. */
export function Tile({
  title,
  figure,
  href,
  children,
}: {
  title: string
  figure: string
  href: string
  children?: ReactNode
}) {
  return (
    <section className="card tile" aria-label={title}>
      <h2>
        <Link href={href}>{title}</Link>
      </h2>
      <p className="figure">{figure}</p>
      {children}
    </section>
  )
}
