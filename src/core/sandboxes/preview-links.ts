import { ApiError } from '../../errors.ts'
import { secretPrefixes } from '../../model/prefixes.ts'
import type { Caller } from '../access/caller.ts'
import { type Grant, readGrant, writeGrant } from '../access/grants.ts'
import type { Runtime } from '../runtime.ts'
import { getSandbox } from './sandboxes.ts'

/** The prefix of a link's signed text. */
export const LINK_PREFIX = secretPrefixes.link

/** The visitor that a link lets in, and where it leads. */
export interface Visitor {
  caller: Caller
  sandboxId: string
  port: number
}

type LinkGrant = Grant & Pick<Visitor, 'sandboxId' | 'port'>

/** A signed text that opens one port of a sandbox to anyone who has it. It expires with the key or token that made it. */
export function createLink(
  runtime: Runtime,
  caller: Caller,
  { sandbox, port, lifetimeMs }: { sandbox: string; port: number; lifetimeMs: number },
): { link: string; expiresAt: string } {
  const { id: sandboxId } = getSandbox(runtime, caller, sandbox)
  const { teamId, keyId, token, expires: latest = Number.POSITIVE_INFINITY } = caller
  const expires = Math.min(Math.floor((Date.now() + lifetimeMs) / 1000), latest)
  const grant: LinkGrant = { teamId, sandboxId, port, expires, ...token, ...(keyId !== undefined && { keyId }) }
  return { link: writeGrant(runtime.db, LINK_PREFIX, grant), expiresAt: new Date(expires * 1000).toISOString() }
}

/** Throws unauthorized. */
export function readLink({ db }: Runtime, link: string): Visitor {
  const { grant, standing } = readGrant<LinkGrant>(db, LINK_PREFIX, link)
  const { sandboxId, port, teamId, keyId, expires, ...token } = grant
  return { sandboxId, port, caller: { teamId, token, expires, ...(keyId !== undefined && { keyId }), ...standing } }
}

/** Throws unauthorized when a link leads elsewhere. */
export function assertLeadsTo(visitor: Visitor, sandboxId: string, port: number): void {
  if (visitor.sandboxId !== sandboxId || visitor.port !== port) {
    throw new ApiError('unauthorized', 'The link is not for this sandbox and port.')
  }
}
