import { randomBytes, scrypt } from 'node:crypto'
import { chacha20poly1305 } from '@noble/ciphers/chacha.js'
import { type Identity, type Recipient, Stanza } from 'age-encryption'

/**
 * The passphrases of age, https://c2sp.org/age#scrypt-recipient-stanza. The library has them too, but computes scrypt in
 * JavaScript, which takes six times as long and holds up everything else meanwhile.
 */

const KIND = 'scrypt'
const LABEL = 'age-encryption.org/v1/scrypt'
const SALT_BYTES = 16
const KEY_BYTES = 32
const WRAPPED_BYTES = 32
/** The work factor of the program `age`, which takes a second on today's machines. */
const WORK_FACTOR = 18
/** A larger work factor could exhaust the reader's time and memory: 2^20 takes 1 GiB. */
const MAX_WORK_FACTOR = 20
const NONCE = new Uint8Array(12)

export const passphraseRecipient = (passphrase: string): Recipient => ({
  async wrapFileKey(fileKey) {
    const salt = randomBytes(SALT_BYTES)
    const key = await deriveKey(passphrase, salt, WORK_FACTOR)
    const args = [KIND, salt.toString('base64').replaceAll('=', ''), `${WORK_FACTOR}`]
    return [new Stanza(args, chacha20poly1305(key, NONCE).encrypt(fileKey))]
  },
})

export const passphraseIdentity = (passphrase: string): Identity => ({
  async unwrapFileKey(stanzas) {
    const stanza = stanzas.find(({ args }) => args[0] === KIND)
    if (!stanza) return null
    const [, text = '', factor = ''] = stanza.args
    const salt = Buffer.from(text, 'base64')
    const isValid = stanzas.length === 1 && stanza.args.length === 3 && /^[1-9]\d?$/.test(factor)
    if (!isValid || salt.byteLength !== SALT_BYTES || stanza.body.byteLength !== WRAPPED_BYTES) {
      throw new Error('its header is damaged')
    }
    if (Number(factor) > MAX_WORK_FACTOR) throw new Error('its passphrase takes too much work to be tried')
    const key = await deriveKey(passphrase, salt, Number(factor))
    try {
      return chacha20poly1305(key, NONCE).decrypt(stanza.body)
    } catch {
      // The passphrase is another one.
      return null
    }
  },
})

function deriveKey(passphrase: string, salt: Buffer, factor: number): Promise<Buffer> {
  const options = { N: 2 ** factor, r: 8, p: 1, maxmem: 2 ** (factor + 11) }
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  scrypt(passphrase, Buffer.concat([Buffer.from(LABEL), salt]), KEY_BYTES, options, (error, key) =>
    error ? reject(error) : resolve(key),
  )
  return promise
}
