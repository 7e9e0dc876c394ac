import { createPublicKey, type KeyObject, verify, type webcrypto } from 'node:crypto'
import { bigNumberField, type Fields, readFields, stringField } from './fields.ts'

/** The curves of ECDSA in SSH, as SSH and as JSON Web Keys name them, with the hash and the bytes of a coordinate. */
const curves = [
  { ssh: 'nistp256', jwk: 'P-256', hash: 'sha256', bytes: 32 },
  { ssh: 'nistp384', jwk: 'P-384', hash: 'sha384', bytes: 48 },
  { ssh: 'nistp521', jwk: 'P-521', hash: 'sha512', bytes: 66 },
] as const

export const findCurve = (name: string) => curves.find(({ ssh, jwk }) => ssh === name || jwk === name)

/** The hashes that RSA signs with, by the name of the algorithm. Not `ssh-rsa`, which is SHA-1. */
export const rsaHashes: Readonly<Record<string, string>> = { 'rsa-sha2-256': 'sha256', 'rsa-sha2-512': 'sha512' }

const base64url = (bytes: Buffer) => bytes.toString('base64url')

/** Reads a public key in SSH's encoding (RFC 4253, RFC 5656, RFC 8709). Throws for a key of another kind. */
export function readPublicKey(blob: Buffer): KeyObject {
  const fields = readFields(blob)
  const key = createPublicKey({ key: readJwk(fields), format: 'jwk' })
  fields.end()
  return key
}

function readJwk(fields: Fields): webcrypto.JsonWebKey {
  const type = fields.text()
  if (type === 'ssh-ed25519') return { kty: 'OKP', crv: 'Ed25519', x: base64url(fields.string()) }
  if (type === 'ssh-rsa') {
    const [e, n] = [fields.string(), fields.string()]
    return { kty: 'RSA', e: base64url(e), n: base64url(withoutZeros(n)) }
  }
  const curve = findCurve(type.replace(/^ecdsa-sha2-/, ''))
  if (!curve || fields.text() !== curve.ssh) throw new Error('a key of another kind')
  const point = fields.string()
  if (point.length !== 1 + 2 * curve.bytes || point[0] !== 4) throw new Error('no point of its curve')
  const [x, y] = [point.subarray(1, 1 + curve.bytes), point.subarray(1 + curve.bytes)]
  return { kty: 'EC', crv: curve.jwk, x: base64url(x), y: base64url(y) }
}

/** Writes a public key in SSH's encoding. Throws for a kind that SSH does not have. */
export function writePublicKey(key: KeyObject): Buffer {
  const { kty, crv = '', x = '', y = '', n = '', e = '' } = key.export({ format: 'jwk' })
  const bytes = (text: string) => Buffer.from(text, 'base64url')
  if (kty === 'OKP' && crv === 'Ed25519') return Buffer.concat([stringField('ssh-ed25519'), stringField(bytes(x))])
  if (kty === 'RSA') return Buffer.concat([stringField('ssh-rsa'), bigNumberField(bytes(e)), bigNumberField(bytes(n))])
  const curve = kty === 'EC' ? findCurve(crv) : undefined
  if (!curve) throw new Error('a key of a kind that SSH does not have')
  const point = Buffer.concat([Buffer.of(4), bytes(x), bytes(y)])
  return Buffer.concat([stringField(`ecdsa-sha2-${curve.ssh}`), stringField(curve.ssh), stringField(point)])
}

/** Whether a signature in SSH's encoding was made with this key. False for anything malformed. */
export function isSignedBy(publicKey: Buffer, signature: Buffer, data: Buffer): boolean {
  try {
    const key = readPublicKey(publicKey)
    const fields = readFields(signature)
    const algorithm = fields.text()
    const bytes = fields.string()
    fields.end()
    if (key.asymmetricKeyType === 'ed25519') return algorithm === 'ssh-ed25519' && verify(null, data, key, bytes)
    if (key.asymmetricKeyType === 'rsa') {
      const hash = Object.hasOwn(rsaHashes, algorithm) ? rsaHashes[algorithm] : undefined
      return hash !== undefined && verify(hash, data, key, bytes)
    }
    const curve = findCurve(algorithm.replace(/^ecdsa-sha2-/, ''))
    if (!curve || key.export({ format: 'jwk' }).crv !== curve.jwk) return false
    const parts = readFields(bytes)
    const numbers = [parts.string(), parts.string()].map(part => padded(withoutZeros(part), curve.bytes))
    parts.end()
    return verify(curve.hash, data, { key, dsaEncoding: 'ieee-p1363' }, Buffer.concat(numbers))
  } catch {
    return false
  }
}

function padded(bytes: Buffer, length: number): Buffer {
  if (bytes.length > length) throw new RangeError('a number is too large')
  return Buffer.concat([Buffer.alloc(length - bytes.length), bytes])
}

function withoutZeros(bytes: Buffer): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  return bytes.subarray(start)
}
