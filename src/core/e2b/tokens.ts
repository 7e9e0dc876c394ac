import { findE2bSandbox, findE2bTeam, listE2bTokens } from '../../db/e2b-sandboxes.ts'
import { findKey } from '../../db/keys.ts'
import { secretPrefixes } from '../../model/prefixes.ts'
import type { Caller } from '../access/caller.ts'
import { sign } from '../access/grants.ts'
import { isEqual } from '../access/is-equal.ts'
import { assertUsable, callerOf } from '../access/keys.ts'
import type { Runtime } from '../runtime.ts'
import { readE2bId, toE2bId } from './ids.ts'

/** What a token is for: `access` for the commands and files of a sandbox, `traffic` for its private ports. */
export type TokenKind = 'access' | 'traffic'

/** A sandbox that a request may use, and the caller it acts as. */
export interface Opened {
  sandboxId: string
  caller: Caller
}

const prefixes = { access: secretPrefixes.e2bAccess, traffic: secretPrefixes.e2bTraffic } as const

/**
 * Makes the token of a sandbox for a key, or for the configured key. It is valid as long as the sandbox and the key are. Its text
 * alone names the sandbox, because old clients send nothing else when they ask for files.
 */
export function writeE2bToken({ db }: Pick<Runtime, 'db'>, kind: TokenKind, sandboxId: string, keyId = ''): string {
  const body = `${toE2bId(sandboxId)}${keyId.replaceAll(/[_-]/g, '')}`
  return `${prefixes[kind]}${body}.${sign(db, prefixes[kind], body)}`
}

/** Undefined for a token that this server did not make, or that is no longer valid. */
export function readE2bToken(runtime: Runtime, kind: TokenKind, token: string): Opened | undefined {
  const place = readPlace(runtime, kind, token)
  return place && openFor(runtime, place.sandboxId, place.keyId)
}

/** Whether there is such a sandbox in any team. */
export const isE2bSandbox = ({ db }: Runtime, sandboxId: string): boolean => findE2bTeam(db, sandboxId) !== undefined

/** The id of the sandbox that one of this server's tokens opened, when that sandbox is gone. */
export function findGone(runtime: Runtime, token: string): string | undefined {
  const { sandboxId } = readPlace(runtime, 'access', token) ?? {}
  return sandboxId === undefined || findE2bTeam(runtime.db, sandboxId) !== undefined ? undefined : sandboxId
}

function readPlace({ db }: Runtime, kind: TokenKind, token: string): { sandboxId: string; keyId: string } | undefined {
  const [, id = '', key = ''] = /^tb[a-z]_(sbx[0-9a-f]{32})(key[0-9a-f]{32})?\.[\w-]{43}$/.exec(token) ?? []
  const sandboxId = readE2bId(id)
  const keyId = key.replace(/^(key)(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1_$2-$3-$4-$5-$6')
  if (sandboxId === undefined || !isEqual(token, writeE2bToken({ db }, kind, sandboxId, keyId))) return undefined
  return { sandboxId, keyId }
}

/** A file that a link opens. */
export interface SignedFile {
  path: string
  operation: 'read' | 'write'
  /** Absent when the client named no user. */
  user?: string
  /** Seconds since 1970, as written in the link. */
  expires?: string
}

/** Signs a file as E2B's clients do. */
export function signFile({ path, operation, user = '', expires }: SignedFile, token: string): string {
  const text = [path, operation, user, token, ...(expires === undefined ? [] : [expires])].join(':')
  return `v1_${new Bun.CryptoHasher('sha256').update(text).digest('base64').replaceAll('=', '')}`
}

/** How many tokens are tried before other work gets its turn. */
const STEP = 250

/**
 * Finds the sandbox of a signed link. A link without `sandboxId` names no sandbox, so every token is tried, those of the youngest
 * sandboxes first. Undefined when no token fits.
 */
export async function openBySignature(
  runtime: Runtime,
  file: SignedFile,
  signature: string,
  sandboxId?: string,
): Promise<Opened | undefined> {
  const { db } = runtime
  for (let before: { sandboxId: string; keyId: string } | undefined; ; ) {
    const tokens = listE2bTokens(db, { limit: STEP, before, sandboxId })
    const found = tokens.find(each =>
      isEqual(signature, signFile(file, writeE2bToken({ db }, 'access', each.sandboxId, each.keyId))),
    )
    if (found) return openFor(runtime, found.sandboxId, found.keyId)
    before = tokens.at(-1)
    if (tokens.length < STEP) return undefined
    await Bun.sleep(0)
  }
}

/** The key id '' stands for the configured key. */
function openFor({ db, config }: Runtime, sandboxId: string, keyId: string): Opened | undefined {
  const teamId = findE2bTeam(db, sandboxId)
  if (teamId === undefined) return undefined
  if (keyId === '') return config.apiKey === undefined ? undefined : { sandboxId, caller: { teamId } }
  const key = findKey(db, keyId)
  if (!key || key.teamId !== teamId) return undefined
  try {
    assertUsable(key, 'The key')
  } catch {
    return undefined
  }
  return { sandboxId, caller: callerOf(key) }
}

/** Opens a public port for a visitor. Undefined for a sandbox whose ports need a token, and for one that does not exist. */
export function openPublicly({ db }: Runtime, sandboxId: string): Opened | undefined {
  const teamId = findE2bSandbox(db, sandboxId)?.isPrivate === false ? findE2bTeam(db, sandboxId) : undefined
  return teamId === undefined ? undefined : { sandboxId, caller: { teamId, scopes: ['sandboxes'] } }
}
