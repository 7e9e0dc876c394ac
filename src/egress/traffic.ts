import { createLimit } from '../async/limit.ts'
import { HttpError } from '../http1/http-error.ts'
import type { Address } from '../read/addresses.ts'
import { createDecisionLog, type DecisionLog, type Refused } from './decision-log.ts'
import type { Resolve } from './dial.ts'
import type { NamePool } from './names/pool.ts'
import { type AnswerName, createResolver } from './names/resolver.ts'
import type { FindRecords } from './names/upstream.ts'
import { createPace, type PaceOptions } from './pace.ts'
import type { Policy, Target } from './policy.ts'

/** How many names one sandbox may resolve at once. Look-ups share threads, which slow look-ups of one sandbox would occupy. */
const MAX_LOOKUPS = 8
/**
 * How many look-ups may go on or wait, including those that their program has given up: with a resolver that hangs they would
 * pile up.
 */
const MAX_WAITING_LOOKUPS = 512
const DNS_PORT = 53
/** What a sandbox waits for: its turn for a connection, or for a next request on a connection to the proxy that is kept. */
export type Turn = 'connection' | 'request'

/**
 * More than package managers, crawlers and loops of curl make; far less than what would keep the server from the connections of
 * others. Inside, the kernel lets no more connections begin.
 */
const PACES: Record<Turn, PaceOptions> = {
  connection: { perSecond: 500, burst: 2000, maxWaiting: 256 },
  request: { perSecond: 1000, burst: 4000, maxWaiting: 256 },
}
export const TOO_MANY = 'too many connections at once'

/** A connection: a stream in this process, or one that the kernel carries. */
export interface Connection {
  destroy(): void
}

/** The open connections and look-ups of one sandbox. */
export interface SandboxTraffic {
  clients: Set<Connection>
  /** The target and address of each connection. */
  open: Map<Connection, { target: Target; address: Address }>
  decisions: DecisionLog
  /** Waits until it is this sandbox's turn. Throws an HttpError when too many wait already, and when the signal is aborted. */
  takeTurn(turn: Turn, signal: AbortSignal): Promise<void>
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
  paces?: Partial<Record<Turn, PaceOptions>>
  /** Returns the present rules. Throws when they are not known. */
  policy(): Policy
  /** Called when the rules refuse what a program asked for. */
  refused(target: Refused, reason: string): void
  entered(what: string): void
  log(line: string): void
}

/** Makes the empty state of a sandbox. */
export function createTraffic(parts: TrafficParts): SandboxTraffic {
  const { environmentId, names, findRecords, policy, refused, entered, log } = parts
  const inTurn = createLimit(MAX_LOOKUPS)
  const all = { ...PACES, ...parts.paces }
  const paces = { connection: createPace(all.connection), request: createPace(all.request) }
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
    async takeTurn(turn, signal) {
      const turned = paces[turn]()
      if (!turned) throw new HttpError(503, TOO_MANY)
      await turned
      signal.throwIfAborted()
    },
    ...{ resolve, names },
    answerName: createResolver({
      ...{ pool: names, resolve, findRecords, policy },
      refused: (name, reason) => refused({ name, port: DNS_PORT, isName: true }, reason),
      entered: () => entered(`a question of ${environmentId} for a name`),
    }),
  }
}

/** Cuts everything that a sandbox has open. */
export function cutAll({ clients, open }: SandboxTraffic): void {
  for (const connection of [...open.keys(), ...clients]) connection.destroy()
}
