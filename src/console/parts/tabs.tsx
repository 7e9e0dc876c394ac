import { useEffect, useRef } from 'react'
import { Link, useRoute } from 'wouter'

export interface Tab {
  path: string
  name: string
  /** Shown beside the name. */
  count?: number
}

/** Parts of one thing, each at an address of its own. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map((tab, index) => (
        <TabLink key={tab.path} {...tab} isFirst={index === 0} />
      ))}
    </nav>
  )
}

/** The first tab has the address of the thing itself, which the others begin with. */
function TabLink({ path, name, count, isFirst }: Tab & { isFirst: boolean }) {
  const [isHere] = useRoute(isFirst ? path : `${path}/*?`)
  const link = useRef<HTMLAnchorElement>(null)
  // On a small page there are more tabs than are seen.
  useEffect(() => {
    if (isHere) link.current?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [isHere])
  return (
    <Link ref={link} href={path} aria-current={isHere ? 'page' : undefined}>
      {name}
      {count !== undefined && <span className="badge">{count}</span>}
    </Link>
  )
}
