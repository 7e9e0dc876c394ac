import type { Database } from 'bun:sqlite'
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syncNow } from '../disk/lasting-files.ts'
import { ApiError } from '../errors.ts'
import { codeOf } from '../read/error-code.ts'
import { isObject } from '../read/json.ts'

/**
 * Encryption of what the database must not show: AES-256-GCM by a key in a file beside it. A text opens only with its
 * key, and as the same column of the same row.
 */

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const PREFIX = 'sealed'
const NAME_CHARS = 8

interface Key {
  bytes: Buffer
  /** Identifies the key without revealing it. */
  name: string
}

const keys = new WeakMap<Database, Key>()

/** Makes the key when there is none. */
export function seal(db: Database, text: string, column: string, id: string): string {
  const key = findKey(db) ?? makeKey(db)
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key.bytes, nonce)
  cipher.setAAD(toAdditionalData(column, id))
  const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return [PREFIX, key.name, sealed.toString('base64')].join(':')
}

/** Decrypts a sealed text; any other is returned as it is. Throws when the key is missing, or is another one. */
export function unseal(db: Database, stored: string, column: string, id: string): string {
  if (!stored.startsWith(`${PREFIX}:`)) return stored
  const [, name = '', data = ''] = stored.split(':')
  const key = findKey(db)
  if (!key) throw new Error(`${keyFile(db)} is missing: what was encrypted with it cannot be read. Put it back.`)
  if (key.name !== name) {
    throw new Error(`${keyFile(db)} is key ${key.name}, this was encrypted with ${name}. Put that one back.`)
  }
  const bytes = Buffer.from(data, 'base64')
  const decipher = createDecipheriv(CIPHER, key.bytes, bytes.subarray(0, NONCE_BYTES))
  decipher.setAAD(toAdditionalData(column, id))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES))
  return Buffer.concat([text, decipher.final()]).toString('utf8')
}

/** Returns what `read` does. Turns its error into sandbox_unavailable that names the owner of the unreadable secrets. */
export function unsealed(whose: 'sandbox' | 'agent' | 'team', read: () => string): string {
  try {
    return read()
  } catch {
    const remedy = 'The operator has to put threadbox.key back as it was; without it, delete it and make it anew.'
    throw new ApiError('sandbox_unavailable', `What the ${whose} has encrypted cannot be read. ${remedy}`)
  }
}

/**
 * Throws when nothing that is encrypted in the database was encrypted with the key that is there: another would be used
 * from here on, and all else be lost. Says on how many rows that is true when it is so of a part of them only.
 */
export function assertKey(db: Database): string | undefined {
  const names = keyNames(db)
  if (names.length === 0) return undefined
  const key = findKey(db)
  const others = names.filter(({ name }) => name !== key?.name)
  if (others.length === 0) return undefined
  const wanted = others.map(({ name, rows }) => `${rows} with key ${name}`).join(', ')
  const now = key ? `${keyFile(db)} is key ${key.name}` : `${keyFile(db)} is missing`
  const text = `${now}, but the database has secrets that were encrypted with another: ${wanted}.`
  if (others.length < names.length) return `${text} Those cannot be read; what has them can be deleted.`
  throw new Error(`${text} Put that key file back, from the backup that the database is of.`)
}

/** The keys that what is encrypted was encrypted with, and how often. */
const keyNames = (db: Database): { name: string; rows: number }[] => {
  const tables = db
    .query<{ name: string }, []>("select name from sqlite_schema where type = 'table'")
    .all()
    .map(({ name }) => name)
  // During a migration, some tables do not exist yet.
  const present = sealed.filter(([table]) => tables.includes(table))
  const texts = present.map(([table, column]) => `select ${column} as text from ${table}`).join(' union all ')
  return db
    .query<{ name: string; rows: number }, []>(
      `select substr(text, ${PREFIX.length + 2}, ${NAME_CHARS}) as name, count(*) as rows from (${texts})
       where text glob '${PREFIX}:*' group by name order by rows desc`,
    )
    .all()
}

/** Every column that may be encrypted. */
const sealed: readonly [table: string, column: string][] = [
  ['sandboxes', 'envs'],
  ['agents', 'sandbox'],
  ['agents', 'options'],
  ['agents', 'env'],
  ['deployments', 'definition'],
  ['webhooks', 'secret'],
  ['snapshots', 'envs'],
  ['secrets', 'value'],
]

/** True when there is a variable: without one the text is stored as it is, and needs no key. */
export const isSecretEnvs = (envs: unknown): boolean => isObject(envs) && Object.keys(envs).length > 0

const toAdditionalData = (column: string, id: string): Buffer => Buffer.from(`${column} ${id}`)

const keyFile = (db: Database): string => join(dirname(db.filename), 'threadbox.key')

function findKey(db: Database): Key | undefined {
  const known = keys.get(db)
  if (known) return known
  let text: string
  try {
    text = readFileSync(keyFile(db), 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
  const bytes = Buffer.from(text.trim(), 'base64')
  if (bytes.byteLength !== KEY_BYTES) throw new Error(`${keyFile(db)} is no key.`)
  const key = { bytes, name: createHash('sha256').update(bytes).digest('hex').slice(0, NAME_CHARS) }
  keys.set(db, key)
  return key
}

/** Whole or not at all; of two processes that make it at once, one does. */
function makeKey(db: Database): Key {
  // Another key beside what the lost one has encrypted would hide that it is lost.
  assertKey(db)
  const path = keyFile(db)
  const draft = `${path}.${crypto.randomUUID()}`
  writeFileSync(draft, `${randomBytes(KEY_BYTES).toString('base64')}\n`, { mode: 0o600, flush: true })
  try {
    linkSync(draft, path)
    // What is encrypted with it may be on the disk a moment later.
    syncNow(dirname(path))
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  const key = findKey(db)
  if (!key) throw new Error(`${path} cannot be read.`)
  return key
}
