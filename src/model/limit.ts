/** What a limit is counted by. A key counts with its tokens, links and sessions; an IPv6 address with its network of 64 bits. */
export type LimitSubject = 'key' | 'token' | 'user' | 'address' | 'team'

/** `rate`: so many in a while. `open`: so many at once. `kept`: so many, until some are removed. */
export type LimitKind = 'rate' | 'open' | 'kept'

/** One limit on callers, for each of its subjects alone. */
export interface LimitDefinition {
  subject: LimitSubject
  name: string
  kind: LimitKind
  /** As `--limit` takes it. */
  default: string
}

const open = ['runs', 'execs', 'streams'] as const

/** Every limit on callers. docs/limits.md has the same table, with what counts. */
export const limits = [
  { subject: 'key', name: 'requests', kind: 'rate', default: '1000/s' },
  { subject: 'token', name: 'requests', kind: 'rate', default: '500/s' },
  { subject: 'user', name: 'requests', kind: 'rate', default: '500/s' },
  // All users of a reverse proxy that is not among the trusted ones have one address.
  { subject: 'address', name: 'requests', kind: 'rate', default: '2000/s' },
  ...(['key', 'token', 'user', 'address'] as const).flatMap(subject =>
    open.map(name => ({ subject, name, kind: 'open', default: '512' }) as const),
  ),
  { subject: 'team', name: 'sandboxes', kind: 'kept', default: '10000' },
  { subject: 'team', name: 'disk', kind: 'kept', default: '0' },
  { subject: 'team', name: 'agents', kind: 'kept', default: '1000' },
  { subject: 'team', name: 'bundles', kind: 'kept', default: '10000' },
  { subject: 'team', name: 'versions', kind: 'kept', default: '10000' },
  { subject: 'address', name: 'failures', kind: 'rate', default: '20/m' },
  { subject: 'address', name: 'connections', kind: 'open', default: '512' },
] as const satisfies readonly LimitDefinition[]

/** `key.requests`: how settings, errors and headers name a limit. */
export type LimitName = (typeof limits)[number] extends infer Each
  ? Each extends { subject: infer Subject extends string; name: infer Name extends string }
    ? `${Subject}.${Name}`
    : never
  : never

/** How many, and of a rate in how long a while. A count of 0 is no limit. */
export interface LimitValue {
  count: number
  /** 0 for what is no rate. */
  periodMs: number
}

/** Limits that replace the server's for one key or team. */
export type OwnLimits = Partial<Record<LimitName, LimitValue>>

/** The same as it is stored and shown: `{"key.requests":"5/s"}`. */
export type LimitTexts = Readonly<Record<string, string>>

export const nameOfLimit = ({ subject, name }: (typeof limits)[number]): LimitName => `${subject}.${name}` as LimitName
