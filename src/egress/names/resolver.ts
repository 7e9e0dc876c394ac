import type { Resolve } from '../dial.ts'
import { createPace } from '../pace.ts'
import type { Policy } from '../policy.ts'
import { answerMessage } from './answer.ts'
import { createLookups } from './lookups.ts'
import type { NamePool } from './pool.ts'
import type { FindRecords } from './upstream.ts'

/** More than an installer of thousands of packages needs, and far less than would keep the server busy. */
const PACE = { perSecond: 1000, burst: 2000, maxWaiting: 256 }

export interface ResolverParts {
  pool: NamePool
  resolve: Resolve
  findRecords: FindRecords
  /** Returns the present rules. Throws when they are not known. */
  policy(): Policy
  /** Called when the rules refuse a name. */
  refused(name: string, reason: string): void
  /** Called when reading a message begins. */
  entered(): void
}

/** Answers one DNS message of a program. Undefined when it gets no answer. Never rejects. */
export type AnswerName = (message: Uint8Array, transport: 'udp' | 'tcp') => Promise<Uint8Array | undefined>

/** Makes the resolver of one sandbox's programs. */
export function createResolver({ resolve, findRecords, entered, ...parts }: ResolverParts): AnswerName {
  const lookups = createLookups(resolve, findRecords)
  const pace = createPace(PACE)
  return async (message, transport) => {
    const turn = pace()
    if (!turn) return undefined
    await turn
    entered()
    return await answerMessage(message, transport, { ...parts, lookups })
  }
}
