import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { bits, integer, objectId, octets, sequence, set, tagged, time, utf8, yes } from './der.ts'

/** A key and a certificate, as PEM. */
export interface Pair {
  key: string
  certificate: string
}

const DAY_MS = 24 * 60 * 60_000
/** The clocks of sandboxes, above all of restored ones, may be slow. */
const BACKDATED_MS = 2 * DAY_MS
const AUTHORITY_MS = 10 * 365 * DAY_MS
/** Programs refuse server certificates that are valid for more than 398 days. */
const LEAF_MS = 90 * DAY_MS
const MAX_COMMON_NAME = 64

const ecdsaWithSha256 = sequence(objectId('1.2.840.10045.4.3.2'))
const commonName = objectId('2.5.4.3')
const ids = {
  subjectKey: objectId('2.5.29.14'),
  keyUsage: objectId('2.5.29.15'),
  alternativeName: objectId('2.5.29.17'),
  basicConstraints: objectId('2.5.29.19'),
  authorityKey: objectId('2.5.29.35'),
  extendedKeyUsage: objectId('2.5.29.37'),
}
const serverAuthentication = objectId('1.3.6.1.5.5.7.3.1')
const [DIGITAL_SIGNATURE, CERTIFICATES_AND_LISTS] = [bits(Buffer.of(0x80), 7), bits(Buffer.of(0x06), 1)]

/** A new key on the curve P-256. */
export const makeKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

/** Makes an authority. Only programs that were given its certificate trust it. */
export function makeAuthority(): Pair {
  const key = makeKey()
  const { publicKey, keyId } = publicPart(key)
  // Each authority has its own name, because two with one name and different keys would be confused.
  const name = nameOf(`threadbox ${keyId.toString('hex').slice(0, 16)}`)
  const certificate = signed(key, {
    ...{ issuer: name, subject: name, publicKey, lastsMs: AUTHORITY_MS },
    extensions: [
      extension(ids.basicConstraints, sequence(yes()), true),
      extension(ids.keyUsage, CERTIFICATES_AND_LISTS, true),
      extension(ids.subjectKey, octets(keyId)),
      extension(ids.authorityKey, sequence(tagged(0x80, keyId))),
    ],
  })
  return { key: key.export({ type: 'pkcs8', format: 'pem' }).toString(), certificate: pemOf(certificate) }
}

/** The certificate of a server of this name, as PEM. */
export function makeLeaf(authorityKey: KeyObject, leafKey: KeyObject, name: string): string {
  const authority = publicPart(authorityKey)
  const { publicKey, keyId } = publicPart(leafKey)
  const certificate = signed(authorityKey, {
    issuer: nameOf(`threadbox ${authority.keyId.toString('hex').slice(0, 16)}`),
    subject: nameOf(name.length <= MAX_COMMON_NAME ? name : 'threadbox'),
    ...{ publicKey, lastsMs: LEAF_MS },
    extensions: [
      extension(ids.basicConstraints, sequence(), true),
      extension(ids.keyUsage, DIGITAL_SIGNATURE, true),
      extension(ids.extendedKeyUsage, sequence(serverAuthentication)),
      extension(ids.alternativeName, sequence(tagged(0x82, Buffer.from(name)))),
      extension(ids.subjectKey, octets(keyId)),
      extension(ids.authorityKey, sequence(tagged(0x80, authority.keyId))),
    ],
  })
  return pemOf(certificate)
}

interface Content {
  issuer: Buffer
  subject: Buffer
  publicKey: Buffer
  lastsMs: number
  extensions: readonly Buffer[]
}

function signed(key: KeyObject, { issuer, subject, publicKey, lastsMs, extensions }: Content): Buffer {
  const from = Date.now() - BACKDATED_MS
  const serial = randomBytes(16)
  // The serial number must be positive and have no leading zero, so every byte counts.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40
  const content = sequence(
    tagged(0xa0, integer(Buffer.of(2))),
    integer(serial),
    ecdsaWithSha256,
    issuer,
    sequence(time(new Date(from)), time(new Date(from + BACKDATED_MS + lastsMs))),
    subject,
    publicKey,
    tagged(0xa3, sequence(...extensions)),
  )
  return sequence(content, ecdsaWithSha256, bits(sign('sha256', content, key)))
}

const nameOf = (text: string): Buffer => sequence(set(sequence(commonName, utf8(text))))

const extension = (id: Buffer, value: Buffer, isCritical = false): Buffer =>
  sequence(id, ...(isCritical ? [yes()] : []), octets(value))

/** The public key as certificates contain it, and its identifier: the hash of its point, which is its last 65 bytes. */
function publicPart(key: KeyObject): { publicKey: Buffer; keyId: Buffer } {
  const publicKey = createPublicKey(key.export({ type: 'pkcs8', format: 'pem' })).export({
    type: 'spki',
    format: 'der',
  })
  return { publicKey, keyId: createHash('sha1').update(publicKey.subarray(-65)).digest() }
}

function pemOf(certificate: Buffer): string {
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}
