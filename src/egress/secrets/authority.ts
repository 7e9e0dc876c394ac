import type { KeyObject } from 'node:crypto'
import type { Pair } from './certificates.ts'

/** Who vouches, towards the programs in sandboxes, for hosts with secrets. Nothing is made or loaded before it is asked. */
export interface Authority {
  /** Its certificate, as PEM. */
  certificatePem(): Promise<string>
  /** A key and a certificate of a server of this name. */
  leafFor(name: string): Promise<Pair>
}

/** Where its key and its certificate are kept, as one text. */
export interface AuthorityStore {
  read(): string | undefined
  write(text: string): void
}

const DAY_MS = 24 * 60 * 60_000
/** An authority that ends within this time is made anew. */
const RENEWED_BEFORE_MS = 60 * DAY_MS
/** Certificates that are kept, the latest used last, and for how long. */
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
  /** All leaves share it: it is this process's own. */
  leafKey: { key: KeyObject; pem: string }
  makeLeaf(authorityKey: KeyObject, leafKey: KeyObject, name: string): string
}

/** Opens what is kept, and makes it when there is nothing, or it ends soon. Throws when it cannot be read. */
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
