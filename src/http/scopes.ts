import { type Scope, scopes } from '../model/scope.ts'

/** Which scopes open a route, one of them being enough. Undefined: any key may ask for it. */
interface Rule {
  path: RegExp
  /** For GET and HEAD. */
  read: readonly Scope[] | undefined
  /** For all other methods. */
  write: readonly Scope[] | undefined
}

const admin: readonly Scope[] = ['admin']
const metrics: readonly Scope[] = ['metrics']
/** What reads figures reads nothing else. */
const others = scopes.filter(scope => !metrics.includes(scope))

/** The first rule that fits counts. A path without a rule is for `admin`. */
const rules: readonly Rule[] = [
  { path: /^\/metrics$/, read: metrics, write: metrics },
  { path: /^\/v1\/(me|session)$/, read: others, write: others },
  // What its tools do is asked for by requests of their own.
  { path: /^\/v1\/mcp$/, read: others, write: others },
  { path: /^\/v1\/chat(\/|$)/, read: ['chat', 'read'], write: ['chat'] },
  { path: /^\/v1\/tokens$/, read: admin, write: ['chat'] },
  // Which of both a schedule wants is decided where it is known.
  { path: /^\/v1\/schedules(\/|$)/, read: ['read', 'chat', 'sandboxes'], write: ['chat', 'sandboxes'] },
  { path: /^\/v1\/(threads|runs|approvals)(\/|$)/, read: ['read', 'chat'], write: ['chat'] },
  { path: /^\/v1\/(usage|budgets|events)$/, read: ['read', 'chat'], write: admin },
  { path: /^\/v1\/sandboxes\/[^/]+\/threads(\/|$)/, read: ['read', 'chat'], write: ['chat'] },
  { path: /^\/v1\/sandboxes(\/[^/]+)?$/, read: ['read', 'chat', 'sandboxes'], write: ['sandboxes'] },
  // What answers there is a program of the sandbox, whatever the method.
  { path: /^\/v1\/sandboxes\/[^/]+\/ports(\/|$)/, read: ['sandboxes'], write: ['sandboxes'] },
  { path: /^\/v1\/sandboxes\/[^/]+\/processes\/[^/]+\/terminal$/, read: ['sandboxes'], write: ['sandboxes'] },
  { path: /^\/v1\/sandboxes\//, read: ['read', 'sandboxes'], write: ['sandboxes'] },
  { path: /^\/v1\/snapshots(\/|$)/, read: ['read', 'sandboxes'], write: ['sandboxes'] },
  { path: /^\/v1\/secrets(\/|$)/, read: ['read', 'secrets'], write: ['secrets'] },
  { path: /^\/v1\/agents(\/|$)/, read: ['read', 'deploy'], write: ['deploy'] },
]

/** Returns the scopes of which a key wants one for this request; undefined when every key may send it. */
export function findScopes(method: string, path: string): readonly Scope[] | undefined {
  const rule = rules.find(each => each.path.test(path.replace(/\/$/, '')))
  if (!rule) return admin
  return method === 'GET' || method === 'HEAD' ? rule.read : rule.write
}
