/**
 * The subject whose use a limit counts. A key is counted together with its tokens, links and sessions; an IPv6 address with its
 * network of 64 bits.
 */
export type LimitSubject = 'key' | 'token' | 'user' | 'address' | 'team'

/** How a limit counts: `rate` per period, `open` at once, `kept` until some are removed. */
export type LimitKind = 'rate' | 'open' | 'kept'

/** One limit on callers. It is counted for each subject separately. */
export interface LimitDefinition {
  subject: LimitSubject
  name: string
  kind: LimitKind
  /** The default, written as for `--limit`. */
  default: string
}

const open = ['runs', 'execs', 'streams'] as const

/** Every limit on callers. docs/limits.md has the same table, with what counts. */
export const limits = [
  { subject: 'key', name: 'requests', kind: 'rate', default: '1000/s' },
  { subject: 'token', name: 'requests', kind: 'rate', default: '500/s' },
  { subject: 'user', name: 'requests', kind: 'rate', default: '500/s' },
  // All users of a reverse proxy that is not trusted share one address.
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

/** The name of a limit in settings, errors and headers, such as `key.requests`. */
export type LimitName = (typeof limits)[number] extends infer Each
  ? Each extends { subject: infer Subject extends string; name: infer Name extends string }
    ? `${Subject}.${Name}`
    : never
  : never

/** How many are allowed, and for a rate in which period. A count of 0 means no limit. */
export interface LimitValue {
  count: number
  /** 0 unless the limit is a rate. */
  periodMs: number
}

/** Limits that replace the server's for one key or team. */
export type OwnLimits = Partial<Record<LimitName, LimitValue>>

/** The same limits as they are stored and shown: `{"key.requests":"5/s"}`. */
export type LimitTexts = Readonly<Record<string, string>>

export const nameOfLimit = ({ subject, name }: (typeof limits)[number]): LimitName => `${subject}.${name}` as LimitName
