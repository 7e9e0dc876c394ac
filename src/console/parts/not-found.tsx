import { Link } from 'wouter'

export function NotFound() {
  return (
    <section className="stack">
      <h1>There is nothing here</h1>
      <p>
        The page may have moved. <Link href="/">Overview</Link>
      </p>
    </section>
  )
}
