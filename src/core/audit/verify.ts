import type { Database } from 'bun:sqlite'
import { countAuditEver, getAuditAnchor, linkHash, listAuditAfter } from '../../db/audit.ts'
import type { AuditHead, AuditLink } from '../../model/audit.ts'
import { isObject, objectOf, parseJson } from '../../read/json.ts'

/** A row's number and hash that somebody has stored elsewhere: the chain must still contain them. */
export type KeptHead = Pick<AuditHead, 'seq' | 'hash'>

export interface Verified {
  /** How many links were checked. */
  count: number
  /** Where the checked links begin: after those that were removed by age. */
  anchor: KeptHead
  head: KeptHead
  /** The last removal by age that a link tells of. */
  cut?: KeptHead
  /** Descriptions of what is wrong; empty when no fault was found. */
  problems: string[]
}

const BATCH = 1000
/** When a chain is broken in many places, the first ones are enough to know. */
const MAX_PROBLEMS = 10

/** Checks each link of the chain as it was at one moment: other processes may write meanwhile. */
export const verifyAudit = (db: Database, kept: readonly KeptHead[]): Verified =>
  db.transaction(() => {
    const anchor = getAuditAnchor(db)
    const verified = verifyLinks(linksOf(db), anchor, kept)
    const { problems, head, cut } = verified
    const isAsCut = anchor.seq === 0 || (cut?.seq === anchor.seq && cut.hash === anchor.hash)
    if (!isAsCut) problems.push(`the chain begins after row ${anchor.seq}, which no row says was removed by age`)
    const ever = countAuditEver(db)
    if (ever !== head.seq)
      problems.push(`the chain ends at ${head.seq}, and there were ${ever} rows: the last ones were removed`)
    return verified
  })()

function* linksOf(db: Database): Generator<AuditLink> {
  // Starts below zero to find also links that somebody has put before the first one.
  for (let after = Number.NEGATIVE_INFINITY; ; ) {
    const links = listAuditAfter(db, after, BATCH)
    yield* links
    const last = links.at(-1)
    if (!last) return
    after = last.seq
  }
}

/** Checks links in their order, from the database or from an exported file. */
export function verifyLinks(links: Iterable<AuditLink>, anchor: KeptHead, kept: readonly KeptHead[]): Verified {
  const problems: string[] = []
  const missing = new Map(kept.map(head => [head.seq, head.hash]))
  const pass = ({ seq, hash }: KeptHead) => {
    const expected = missing.get(seq)
    if (expected === undefined) return
    missing.delete(seq)
    if (expected !== hash)
      problems.push(`row ${seq} is another one than the kept hash says: the chain was written anew`)
  }
  let head: KeptHead = anchor
  let count = 0
  let cut: KeptHead | undefined
  pass(anchor)
  for (const { seq, entry, hash } of links) {
    count++
    if (problems.length < MAX_PROBLEMS) problems.push(...faultsOf({ seq, entry, hash }, head))
    head = { seq, hash }
    pass(head)
    cut = cutOf(entry) ?? cut
  }
  const isAnyCompared = kept.length > missing.size
  for (const seq of missing.keys()) {
    if (seq < anchor.seq && !isAnyCompared)
      problems.push(`row ${seq}, whose hash was kept, is older than all that is here: nothing was compared with it`)
    if (seq > anchor.seq) problems.push(`row ${seq}, whose hash was kept, is not there: the last rows were removed`)
  }
  const { seq, hash } = anchor
  return { count, anchor: { seq, hash }, head, problems, ...(cut && { cut }) }
}

function faultsOf({ seq, entry, hash }: AuditLink, before: KeptHead): string[] {
  if (seq !== before.seq + 1) return [`after row ${before.seq} comes row ${seq}: rows were removed or moved`]
  if (linkHash(before.hash, entry) !== hash)
    return [`row ${seq} is not what its hash says: it, or one before it, was altered`]
  return seqOf(entry) === seq ? [] : [`row ${seq} says that it is another one`]
}

const parse = (entry: string) => objectOf(parseJson(entry)) ?? {}

const seqOf = (entry: string): unknown => parse(entry).seq

function cutOf(entry: string): KeptHead | undefined {
  if (!entry.includes('"audit.cut"')) return undefined
  const { action, target } = parse(entry)
  if (action !== 'audit.cut' || !isObject(target)) return undefined
  const { seq, hash } = target
  return typeof seq === 'number' && typeof hash === 'string' ? { seq, hash } : undefined
}
