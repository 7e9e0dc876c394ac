import { createPrivateKey, createPublicKey, type KeyObject, sign, type webcrypto } from 'node:crypto'
import { bigNumberField, type Fields, readFields, stringField } from './fields.ts'
import { findCurve, rsaHashes, writePublicKey } from './public-key.ts'

/** A private key, and its public half as SSH has it. */
export interface SshKey {
  publicKey: Buffer
  /** Signs with an SSH algorithm; the signature is in SSH's encoding. Throws for an algorithm that does not fit the key. */
  sign(algorithm: string, data: Buffer): Buffer
}

/** Reads a private key without a passphrase, in OpenSSH's format or as PEM. Throws an error that contains no part of the key. */
export function readPrivateKey(text: string): SshKey {
  const key = toKey(text)
  const publicKey = writePublicKey(createPublicKey(key))
  return { publicKey, sign: (algorithm, data) => signWith(key, algorithm, data) }
}

const OPENSSH = /-----BEGIN OPENSSH PRIVATE KEY-----([A-Za-z0-9+/=\s]*)-----END OPENSSH PRIVATE KEY-----/

function toKey(text: string): KeyObject {
  const [, openssh] = OPENSSH.exec(text) ?? []
  try {
    if (openssh === undefined) return createPrivateKey(text)
  } catch {
    throw new Error(/ENCRYPTED/.test(text) ? PASSPHRASE : NO_KEY)
  }
  let jwk: webcrypto.JsonWebKey
  try {
    jwk = readOpenSsh(Buffer.from(openssh, 'base64'))
  } catch (error) {
    throw new Error(error instanceof Encrypted ? PASSPHRASE : NO_KEY)
  }
  try {
    return createPrivateKey({ key: jwk, format: 'jwk' })
  } catch {
    throw new Error(NO_KEY)
  }
}

const NO_KEY = 'it is no private key of OpenSSH or PEM'
const PASSPHRASE = 'the key has a passphrase'

class Encrypted extends Error {}

const MAGIC = Buffer.from('openssh-key-v1\0')

/** The format is described in OpenSSH's PROTOCOL.key. */
function readOpenSsh(bytes: Buffer): webcrypto.JsonWebKey {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new Error('another format')
  const outer = readFields(bytes.subarray(MAGIC.length))
  const [cipher] = [outer.text(), outer.text(), outer.string()]
  if (outer.number() !== 1) throw new Error('not one key')
  outer.string()
  if (cipher !== 'none') throw new Encrypted()
  const inner = readFields(outer.string())
  const check = inner.number()
  if (inner.number() !== check) throw new Error('damaged')
  return readJwk(inner)
}

const base64url = (bytes: Buffer) => bytes.toString('base64url')

function readJwk(fields: Fields): webcrypto.JsonWebKey {
  const type = fields.text()
  if (type === 'ssh-ed25519') {
    fields.string()
    const both = fields.string()
    return { kty: 'OKP', crv: 'Ed25519', d: base64url(both.subarray(0, 32)), x: base64url(both.subarray(32)) }
  }
  if (type === 'ssh-rsa') return rsaJwk(fields)
  const curve = findCurve(type.replace(/^ecdsa-sha2-/, ''))
  if (!curve || fields.text() !== curve.ssh) throw new Error('a key of another kind')
  const point = fields.string()
  const [x, y] = [point.subarray(1, 1 + curve.bytes), point.subarray(1 + curve.bytes)]
  return {
    kty: 'EC',
    crv: curve.jwk,
    x: base64url(x),
    y: base64url(y),
    d: base64url(toLength(fields.string(), curve.bytes)),
  }
}

function rsaJwk(fields: Fields): webcrypto.JsonWebKey {
  const [n, e, d, qi, p, q] = Array.from({ length: 6 }, () => toNumber(fields.string())) as [
    ...[bigint, bigint, bigint, bigint, bigint, bigint],
  ]
  const text = (value: bigint) => base64url(toBytes(value))
  const exponents = { dp: text(d % (p - 1n)), dq: text(d % (q - 1n)) }
  return { kty: 'RSA', n: text(n), e: text(e), d: text(d), p: text(p), q: text(q), qi: text(qi), ...exponents }
}

const toNumber = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString('hex') || '0'}`)

function toBytes(value: bigint): Buffer {
  const hex = value.toString(16)
  return Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex')
}

const toLength = (bytes: Buffer, length: number): Buffer =>
  Buffer.concat([Buffer.alloc(length), bytes]).subarray(-length)

function signWith(key: KeyObject, algorithm: string, data: Buffer): Buffer {
  const signed = (bytes: Buffer) => Buffer.concat([stringField(algorithm), stringField(bytes)])
  if (key.asymmetricKeyType === 'ed25519' && algorithm === 'ssh-ed25519') return signed(sign(null, data, key))
  if (key.asymmetricKeyType === 'rsa') {
    const hash = Object.hasOwn(rsaHashes, algorithm) ? rsaHashes[algorithm] : undefined
    if (hash !== undefined) return signed(sign(hash, data, key))
  }
  const curve = key.asymmetricKeyType === 'ec' ? findCurve(key.export({ format: 'jwk' }).crv ?? '') : undefined
  if (!curve || algorithm !== `ecdsa-sha2-${curve.ssh}`) throw new Error('not an algorithm of this key')
  const numbers = sign(curve.hash, data, { key, dsaEncoding: 'ieee-p1363' })
  const halves = [numbers.subarray(0, curve.bytes), numbers.subarray(curve.bytes)]
  return signed(Buffer.concat(halves.map(bigNumberField)))
}
