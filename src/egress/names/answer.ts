import { type Address, parseAddress } from '../../read/addresses.ts'
import { findAddressDenialAtEachPort, findNameDenialAtEachPort, type Policy } from '../policy.ts'
import { parseHost } from '../rules.ts'
import type { Found, Lookups } from './lookups.ts'
import {
  type Answer,
  CLASS_INTERNET,
  codes,
  type DnsRecord,
  encodeAnswer,
  parseQuery,
  type Query,
  types,
} from './message.ts'
import { isPoolAddress, type NamePool } from './pool.ts'
import { encodeName, isAskedFor, TTL } from './records.ts'
import { parseReverse } from './reverse.ts'

export interface Answering {
  /** The rules as they are now. Throws when they are not known. */
  policy(): Policy
  pool: NamePool
  lookups: Lookups
  /** The rules refuse a name. */
  refused(name: string, reason: string): void
}

/** Answers one DNS message by a sandbox's rules. Undefined: it gets no answer. Never rejects. */
export async function answerMessage(
  message: Uint8Array,
  transport: 'udp' | 'tcp',
  answering: Answering,
): Promise<Uint8Array | undefined> {
  const query = parseQuery(message)
  if (query === undefined || query instanceof Uint8Array) return query
  return encodeAnswer(query, await answer(query, answering), transport)
}

const noSuchName: Answer = { code: codes.noSuchName }
const refused: Answer = { code: codes.refused }
const empty: Answer = { code: codes.success }

/** From TKEY to ANY: what asks for more than a record of a name. */
const isMeta = (type: number) => type === types.OPT || (type >= 249 && type <= types.ANY)

async function answer(query: Query, answering: Answering): Promise<Answer> {
  const { edns, type } = query
  if (edns && edns.version > 0) return { code: codes.badVersion }
  if (query.class !== CLASS_INTERNET || isMeta(type) || query.name === '') return refused
  const name = query.name?.toLowerCase()
  if (name === undefined) return noSuchName
  if (name === 'localhost' || name.endsWith('.localhost')) return answerLocalhost(type)
  const address = parseReverse(name)
  const isOwn = address && (isPoolAddress(address) || isLoopback(address))
  if (isOwn) return answerOwn(address, type, answering.pool)
  const host = parseHost(name)
  if (!host || host.address) return noSuchName
  let policy: Policy
  try {
    policy = answering.policy()
  } catch {
    return refused
  }
  // The rules are checked before any look-up, because the look-up itself would reach the servers of the name's domain.
  const reason = address ? findAddressDenialAtEachPort(policy, name, address) : findNameDenialAtEachPort(policy, name)
  if (reason !== undefined) {
    answering.refused(name, reason)
    return { ...noSuchName, reason }
  }
  return await answerAllowed(host.name, type, answering)
}

async function answerAllowed(name: string, type: number, { lookups, pool }: Answering): Promise<Answer> {
  const version = type === types.A ? 4 : type === types.AAAA ? 6 : undefined
  if (version) {
    const kinds = await lookups.kindsOf(name)
    return answerFound(kinds, ({ has4, has6 }) =>
      (version === 4 ? has4 : has6) ? [addressRecord(pool.addressFor(name, version))] : [],
    )
  }
  // Those of HTTPS and SVCB too: their hints and ports would lead around the rules.
  if (!isAskedFor(type)) return empty
  return answerFound(await lookups.records(name, type), records => records)
}

function answerFound<T>(found: Found<T>, recordsOf: (found: T) => readonly DnsRecord[]): Answer {
  if (found === 'failed') return { code: codes.failed }
  if (found === 'no-such-name') return noSuchName
  return { code: codes.success, records: recordsOf(found.found) }
}

function answerLocalhost(type: number): Answer {
  if (type === types.A) return { code: codes.success, records: [addressRecord('127.0.0.1')] }
  return type === types.AAAA ? { code: codes.success, records: [addressRecord('::1')] } : empty
}

/** What an address of the sandbox itself stands for. */
function answerOwn(address: Address, type: number, pool: NamePool): Answer {
  const name = isLoopback(address) ? 'localhost' : pool.nameOf(address)
  if (name === undefined) return noSuchName
  return type === types.PTR ? { code: codes.success, records: [{ type, ttl: TTL, data: encodeName(name) }] } : empty
}

const isLoopback = ({ version, value }: Address): boolean => (version === 4 ? value >> 24n === 127n : value === 1n)

function addressRecord(text: string): DnsRecord {
  const address = parseAddress(text)
  if (!address) throw new Error('not an address')
  const hex = address.value.toString(16).padStart(address.version === 4 ? 8 : 32, '0')
  return { type: address.version === 4 ? types.A : types.AAAA, ttl: TTL, data: Buffer.from(hex, 'hex') }
}
