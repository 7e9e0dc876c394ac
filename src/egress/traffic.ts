import { createLimit } from '../async/limit.ts'
import { HttpError } from '../http1/http-error.ts'
import type { Address } from '../read/addresses.ts'
import { createDecisionLog, type DecisionLog, type Refused } from './decision-log.ts'
import type { Resolve } from './dial.ts'
import type { NamePool } from './names/pool.ts'
import { type AnswerName, createResolver } from './names/resolver.ts'
import type { FindRecords } from './names/upstream.ts'
import type { Policy, Target } from './policy.ts'

/** Names that one sandbox may resolve at once. Lookups share threads, which slow ones of one sandbox would hold. */
const MAX_LOOKUPS = 8
/** With those that wait, also when who asked has given up: a resolver that hangs would let them pile up. */
const MAX_WAITING_LOOKUPS = 512
const DNS_PORT = 53

/** A connection, as a stream here or as one that the kernel carries. */
export interface Connection {
  destroy(): void
}

/** What one sandbox has open here. */
export interface SandboxTraffic {
  clients: Set<Connection>
  /** What was reached, for each connection. */
  open: Map<Connection, { target: Target; address: Address }>
  decisions: DecisionLog
  resolve: Resolve
  /** The addresses that stand for names inside. */
  names: NamePool
  answerName: AnswerName
}

export interface TrafficParts {
  environmentId: string
  names: NamePool
  resolve: Resolve
  findRecords: FindRecords
  /** The rules as they are now. Throws when they are not known. */
  policy(): Policy
  /** The rules refuse what a program asked for. */
  refused(target: Refused, reason: string): void
  entered(what: string): void
  log(line: string): void
}

/** What a sandbox begins with. */
export function createTraffic(parts: TrafficParts): SandboxTraffic {
  const { environmentId, names, findRecords, policy, refused, entered, log } = parts
  const inTurn = createLimit(MAX_LOOKUPS)
  let lookups = 0
  const resolve: Resolve = async name => {
    if (lookups >= MAX_WAITING_LOOKUPS) throw new HttpError(503, 'too many names at once')
    lookups++
    return await inTurn(() => parts.resolve(name)).finally(() => lookups--)
  }
  return {
    clients: new Set(),
    open: new Map(),
    decisions: createDecisionLog(environmentId, log),
    ...{ resolve, names },
    answerName: createResolver({
      ...{ pool: names, resolve, findRecords, policy },
      refused: (name, reason) => refused({ name, port: DNS_PORT, isName: true }, reason),
      entered: () => entered(`a question of ${environmentId} for a name`),
    }),
  }
}

/** Cuts all that a sandbox has open. */
export function cutAll({ clients, open }: SandboxTraffic): void {
  for (const connection of [...open.keys(), ...clients]) connection.destroy()
}
