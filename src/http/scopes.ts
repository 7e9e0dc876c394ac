import { type Scope, scopes } from '../model/scope.ts'

/** The scopes that open a route; one of them is enough. Undefined when any key may use it. */
interface Rule {
  path: RegExp
  /** The scopes for GET and HEAD. */
  read: readonly Scope[] | undefined
  /** The scopes for all other methods. */
  write: readonly Scope[] | undefined
}

const admin: readonly Scope[] = ['admin']
const metrics: readonly Scope[] = ['metrics']
/** A key with only the scope for figures can read nothing else. */
const others = scopes.filter(scope => !metrics.includes(scope))

/** The first rule that matches counts. A path without a rule needs `admin`. */
const rules: readonly Rule[] = [
  { path: /^\/metrics$/, read: metrics, write: metrics },
  { path: /^\/v1\/(me|session)$/, read: others, write: others },
  // The tools send requests of their own, whose scopes are checked.
  { path: /^\/v1\/mcp$/, read: others, write: others },
  { path: /^\/v1\/chat(\/|$)/, read: ['chat', 'read'], write: ['chat'] },
  { path: /^\/v1\/tokens$/, read: admin, write: ['chat'] },
  // The handler decides which of the two scopes a schedule needs.
  { path: /^\/v1\/schedules(\/|$)/, read: ['read', 'chat', 'sandboxes'], write: ['chat', 'sandboxes'] },
  { path: /^\/v1\/(threads|runs|approvals)(\/|$)/, read: ['read', 'chat'], write: ['chat'] },
  { path: /^\/v1\/(usage|budgets|events)$/, read: ['read', 'chat'], write: admin },
  { path: /^\/v1\/sandboxes\/[^/]+\/threads(\/|$)/, read: ['read', 'chat'], write: ['chat'] },
  { path: /^\/v1\/sandboxes(\/[^/]+)?$/, read: ['read', 'chat', 'sandboxes'], write: ['sandboxes'] },
  // A program of the sandbox answers these requests, whatever the method.
  { path: /^\/v1\/sandboxes\/[^/]+\/ports(\/|$)/, read: ['sandboxes'], write: ['sandboxes'] },
  { path: /^\/v1\/sandboxes\/[^/]+\/processes\/[^/]+\/terminal$/, read: ['sandboxes'], write: ['sandboxes'] },
  { path: /^\/v1\/sandboxes\//, read: ['read', 'sandboxes'], write: ['sandboxes'] },
  { path: /^\/v1\/snapshots(\/|$)/, read: ['read', 'sandboxes'], write: ['sandboxes'] },
  { path: /^\/v1\/secrets(\/|$)/, read: ['read', 'secrets'], write: ['secrets'] },
  { path: /^\/v1\/agents(\/|$)/, read: ['read', 'deploy'], write: ['deploy'] },
]

/** The scopes of which a key needs one for this request; undefined when every key may send it. */
export function findScopes(method: string, path: string): readonly Scope[] | undefined {
  const rule = rules.find(each => each.path.test(path.replace(/\/$/, '')))
  if (!rule) return admin
  return method === 'GET' || method === 'HEAD' ? rule.read : rule.write
}
