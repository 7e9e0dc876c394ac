import type { Database } from 'bun:sqlite'
import { closeSync, openSync, readSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { exportedLine, readExportedLine } from '../core/audit/exported-line.ts'
import { type KeptHead, type Verified, verifyAudit, verifyLinks } from '../core/audit/verify.ts'
import { findAuditHead, linkHash, listAudit, listAuditAfter } from '../db/audit.ts'
import { findTeam } from '../db/teams.ts'
import type { AuditLink, AuditRow } from '../model/audit.ts'
import { openData } from '../start/data.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { printList } from './list.ts'
import { printer } from './print.ts'

const EXPORTED_AT_ONCE = 1000
const DEFAULT_LIMIT = 100
const PIECE_BYTES = 64 * 1024

/** Works beside a running server. Resolves to the exit code, which is 1 when the chain is broken. */
export async function audit(given: Given): Promise<number> {
  const { action } = given
  const file = action === 'verify' ? given.find('file') : undefined
  if (file !== undefined) return report(verifyFile(file, readHeads(given)))
  const { config } = await readPlace(given)
  const db = await openData(config.dataDirectory)
  try {
    if (action === 'verify') return report(verifyAudit(db, readHeads(given)))
    if (action === 'list') list(given, db)
    else if (action === 'export') await exportAll(given, db)
    else printHead(db)
    return 0
  } finally {
    db.close()
  }
}

function list(given: Given, db: Database): void {
  const teamName = given.find('team')
  const team = teamName === undefined ? undefined : findTeam(db, teamName)
  if (teamName !== undefined && !team) throw new UsageError(`There is no team ${teamName}.`)
  const wanted = given.find('action')
  const since = readMoment(given, 'since')
  const until = readMoment(given, 'until')
  const links = listAudit(db, {
    limit: readNumber(given, 'limit') ?? DEFAULT_LIMIT,
    ...(team && { teamId: team.id }),
    ...(wanted !== undefined && { action: wanted }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  })
  const rows = links.map(({ entry, hash }) => ({ ...(JSON.parse(entry) as AuditRow), hash }))
  printList(given, rows, {
    seq: each => String(each.seq),
    time: each => each.time,
    action: each => each.action,
    outcome: each => each.outcome,
    by: each => named({ ...each.actor }),
    target: each => named(each.target),
    detail: each => named(each.detail ?? {}),
  })
}

const named = (of: object): string =>
  Object.entries(of)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ') || '-'

async function exportAll(given: Given, db: Database): Promise<void> {
  const { stdout } = printer()
  for (let after = readNumber(given, 'after') ?? 0; ; ) {
    const links = listAuditAfter(db, after, EXPORTED_AT_ONCE)
    const last = links.at(-1)
    if (!last) return
    await stdout(links.map(exportedLine).join(''))
    after = last.seq
  }
}

function printHead(db: Database): void {
  const { seq, hash } = findAuditHead(db)
  console.log(`${seq}:${hash}`)
}

function report({ count, anchor, head, problems }: Verified): number {
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) return 1
  console.log(
    `${count} rows, ${anchor.seq + 1} to ${head.seq}: the chain is whole. Its head is ${head.seq}:${head.hash}`,
  )
  return 0
}

/** A file has no anchor, so its first line is trusted, unless it is the very first row. */
function verifyFile(file: string, kept: readonly KeptHead[]): Verified {
  const links = linksOfFile(file)
  const genesis: KeptHead = { seq: 0, hash: '0'.repeat(64) }
  const { value: first } = links.next()
  if (!first) return { count: 0, anchor: genesis, head: genesis, problems: ['the file has no rows'] }
  const isVeryFirst = first.seq === 1 || linkHash(genesis.hash, first.entry) === first.hash
  return isVeryFirst ? verifyLinks(startingWith(first, links), genesis, kept) : verifyLinks(links, first, kept)
}

function* startingWith(first: AuditLink, rest: Iterable<AuditLink>): Generator<AuditLink> {
  yield first
  yield* rest
}

/** A log of years is larger than memory: it is read a piece at a time. */
function* linksOfFile(file: string): Generator<AuditLink, undefined> {
  const descriptor = openSync(file, 'r')
  try {
    const piece = Buffer.allocUnsafe(PIECE_BYTES)
    const decoder = new StringDecoder('utf8')
    let [rest, line] = ['', 0]
    for (let length = -1; length !== 0; ) {
      length = readSync(descriptor, piece)
      const lines = (rest + decoder.write(piece.subarray(0, length))).split('\n')
      rest = lines.pop() ?? ''
      for (const text of lines) yield readExportedLine(text.replace(/\r$/, ''), ++line)
    }
    if (rest !== '') yield readExportedLine(rest, line + 1)
  } finally {
    closeSync(descriptor)
  }
  return undefined
}

const readHeads = (given: Given): KeptHead[] =>
  given.all('head').map(text => {
    const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
    if (hash === undefined) throw new UsageError('--head wants what audit head prints, like 120:9f86d0…')
    return { seq: Number(seq), hash }
  })

function readNumber(given: Given, flag: string): number | undefined {
  const text = given.find(flag)
  if (text === undefined) return undefined
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${flag} wants a whole number`)
  return Number(text)
}

function readMoment(given: Given, flag: string): string | undefined {
  const text = given.find(flag)
  if (text === undefined) return undefined
  const date = new Date(text)
  if (Number.isNaN(date.getTime())) throw new UsageError(`--${flag} wants a time like 2030-01-31T00:00:00Z`)
  return date.toISOString()
}
