/** Finds the route of a request. Its text has only words of the API, so that there are few different ones. */
export type FindRoute = (method: string, path: string) => { method: string; route: string }

interface Branch {
  words: Map<string, Branch>
  /** Matches any one segment, under the name that the route gives it. */
  parameter?: { name: string; branch: Branch }
  /** Matches all segments that follow. */
  rest?: string
  route?: string
}

const OTHER = 'other'
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Finds routes among these, written like `/v1/sandboxes/:sandboxId`. `other` is the result for any other path. */
export function createFindRoute(paths: readonly string[]): FindRoute {
  const root: Branch = { words: new Map() }
  for (const path of paths) {
    let at = root
    for (const segment of segmentsOf(path)) at = grow(at, segment, path)
    at.route ??= `/${segmentsOf(path).join('/')}`
  }
  return (method, path) => ({
    method: methods.includes(method) ? method : OTHER,
    route: find(root, segmentsOf(path)) ?? OTHER,
  })
}

const segmentsOf = (path: string) => path.split('/').filter(segment => segment !== '')

function grow(at: Branch, segment: string, path: string): Branch {
  if (segment.startsWith('*')) {
    at.rest = path
    return at
  }
  if (segment.startsWith(':')) {
    at.parameter ??= { name: segment, branch: { words: new Map() } }
    return at.parameter.branch
  }
  const next = at.words.get(segment) ?? { words: new Map() }
  at.words.set(segment, next)
  return next
}

/** A literal segment is preferred to a parameter, as in the router. */
function find(at: Branch, [segment, ...later]: readonly string[]): string | undefined {
  if (segment === undefined) return at.route ?? at.rest
  const word = at.words.get(segment)
  const found = word && find(word, later)
  return found ?? (at.parameter && find(at.parameter.branch, later)) ?? at.rest
}
