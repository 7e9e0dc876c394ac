import type { KeyObject } from 'node:crypto'
import type { Pair } from './certificates.ts'

/**
 * The certificate authority that programs in sandboxes trust for hosts with secrets. Nothing is made or loaded before it is
 * needed.
 */
export interface Authority {
  /** The authority's certificate, as PEM. */
  certificatePem(): Promise<string>
  /** Returns a key and a certificate for a server of this name. */
  leafFor(name: string): Promise<Pair>
}

/** Stores the authority's key and certificate as one text. */
export interface AuthorityStore {
  read(): string | undefined
  write(text: string): void
}

const DAY_MS = 24 * 60 * 60_000
/** An authority that expires within this time is replaced. */
const RENEWED_BEFORE_MS = 60 * DAY_MS
/** How many certificates are kept, those used last, and for how long. */
const MAX_LEAVES = 256
const LEAF_MS = 30 * DAY_MS

export function createAuthority(store: AuthorityStore): Authority {
  let opened: Promise<Opened> | undefined
  const leaves = new Map<string, Pair & { madeAt: number }>()
  const open = async () => {
    opened ??= openAuthority(store)
    try {
      return await opened
    } catch (error) {
      opened = undefined
      throw error
    }
  }

  return {
    certificatePem: async () => (await open()).certificate,
    async leafFor(name) {
      const { key, leafKey, makeLeaf } = await open()
      let leaf = leaves.get(name)
      if (!leaf || Date.now() - leaf.madeAt > LEAF_MS) {
        leaf = { key: leafKey.pem, certificate: makeLeaf(key, leafKey.key, name), madeAt: Date.now() }
      }
      leaves.delete(name)
      leaves.set(name, leaf)
      const [oldest] = leaves.keys()
      if (leaves.size > MAX_LEAVES && oldest !== undefined) leaves.delete(oldest)
      return { key: leaf.key, certificate: leaf.certificate }
    },
  }
}

interface Opened {
  certificate: string
  key: KeyObject
  /** All certificates share this key, which exists only in this process. */
  leafKey: { key: KeyObject; pem: string }
  makeLeaf(authorityKey: KeyObject, leafKey: KeyObject, name: string): string
}

/** Opens the stored authority; makes one when there is none, or when it expires soon. Throws when it cannot be read. */
async function openAuthority({ read, write }: AuthorityStore): Promise<Opened> {
  const { createPrivateKey, X509Certificate } = await import('node:crypto')
  const { makeAuthority, makeKey, makeLeaf } = await import('./certificates.ts')
  const kept = read()
  let pair = kept === undefined ? undefined : splitPair(kept)
  if (!pair || Date.parse(new X509Certificate(pair.certificate).validTo) - Date.now() < RENEWED_BEFORE_MS) {
    pair = makeAuthority()
    write(pair.key + pair.certificate)
  }
  const leafKey = makeKey()
  return {
    certificate: pair.certificate,
    key: createPrivateKey(pair.key),
    leafKey: { key: leafKey, pem: leafKey.export({ type: 'pkcs8', format: 'pem' }).toString() },
    makeLeaf,
  }
}

function splitPair(text: string): Pair {
  const at = text.indexOf('-----BEGIN CERTIFICATE-----')
  return { key: text.slice(0, at), certificate: text.slice(at) }
}
