import type { Resolve } from '../dial.ts'
import { createPace } from '../pace.ts'
import type { Policy } from '../policy.ts'
import { answerMessage } from './answer.ts'
import { createLookups } from './lookups.ts'
import type { NamePool } from './pool.ts'
import type { FindRecords } from './upstream.ts'

/** More than an installer of thousands of packages asks for; far less than what would keep the server busy. */
const PACE = { perSecond: 1000, burst: 2000, maxWaiting: 256 }

export interface ResolverParts {
  pool: NamePool
  resolve: Resolve
  findRecords: FindRecords
  /** The rules as they are now. Throws when they are not known. */
  policy(): Policy
  /** The rules refuse a name. */
  refused(name: string, reason: string): void
  /** A message is read from now on. */
  entered(): void
}

/** Answers one DNS message of a program. Undefined: it gets no answer. Never rejects. */
export type AnswerName = (message: Uint8Array, transport: 'udp' | 'tcp') => Promise<Uint8Array | undefined>

/** The resolver of one sandbox's programs. */
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
