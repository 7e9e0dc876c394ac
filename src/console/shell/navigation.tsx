import { Link, useRoute } from 'wouter'

const rooms = [
  { path: '/', name: 'Overview' },
  { path: '/sandboxes', name: 'Sandboxes' },
  { path: '/threads', name: 'Threads' },
  { path: '/agents', name: 'Agents' },
  { path: '/usage', name: 'Usage' },
  { path: '/settings', name: 'Settings' },
] as const

export function Navigation() {
  return (
    <nav className="rooms" aria-label="Rooms">
      <span className="brand">threadbox</span>
      <ul>
        {rooms.map(room => (
          <Room key={room.path} {...room} />
        ))}
      </ul>
    </nav>
  )
}

function Room({ path, name }: (typeof rooms)[number]) {
  const [isHere] = useRoute(path === '/' ? path : `${path}/*?`)
  return (
    <li>
      <Link href={path} aria-current={isHere ? 'page' : undefined}>
        {name}
      </Link>
    </li>
  )
}
