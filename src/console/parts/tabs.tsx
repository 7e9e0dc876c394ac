import { useEffect, useRef } from 'react'
import { Link, useRoute } from 'wouter'

export interface Tab {
  path: string
  name: string
  /** The number beside the name. */
  count?: number
}

/** Shows the parts of one thing, each at its own address. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map((tab, index) => (
        <TabLink key={tab.path} {...tab} isFirst={index === 0} />
      ))}
    </nav>
  )
}

/** The first tab has the address of the thing itself. The other tabs' addresses begin with it. */
function TabLink({ path, name, count, isFirst }: Tab & { isFirst: boolean }) {
  const [isHere] = useRoute(isFirst ? path : `${path}/*?`)
  const link = useRef<HTMLAnchorElement>(null)
  // A small page shows only some of the tabs.
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
