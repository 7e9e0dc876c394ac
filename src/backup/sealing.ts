import { messageOf } from '../errors.ts'

/** The secrets of encrypted backups. Without any, backups are not encrypted. */
export interface Secrets {
  passphrase?: string
  /** Public keys of age, `age1…`. The owner of any of them can open the backup. */
  recipients?: readonly string[]
  /** Private keys of age, `AGE-SECRET-KEY-1…`. */
  identities?: readonly string[]
}

export const AGE_SUFFIX = '.age'

export const encrypts = ({ passphrase, recipients = [] }: Secrets): boolean =>
  passphrase !== undefined || recipients.length > 0

/** Encrypts a stream as the program `age` does, if there are secrets. */
export async function seal(bytes: AsyncIterable<Uint8Array>, secrets: Secrets): Promise<AsyncIterable<Uint8Array>> {
  if (!encrypts(secrets)) return bytes
  const { passphrase, recipients = [] } = secrets
  if (passphrase !== undefined && recipients.length > 0) {
    throw new Error('a backup is encrypted for a passphrase or for recipients, not for both')
  }
  const [{ Encrypter }, { passphraseRecipient }] = await Promise.all([
    import('age-encryption'),
    import('./passphrase.ts'),
  ])
  const encrypter = new Encrypter()
  if (passphrase !== undefined) encrypter.addRecipient(passphraseRecipient(passphrase))
  for (const recipient of recipients) {
    try {
      encrypter.addRecipient(recipient)
    } catch {
      throw new Error(`${recipient} is no public key of age (age1…)`)
    }
  }
  return await encrypter.encrypt(toStream(bytes))
}

/** Decrypts what `seal` has encrypted. Throws when none of the secrets fits. */
export async function unseal(
  bytes: AsyncIterable<Uint8Array>,
  { passphrase, identities = [] }: Secrets,
): Promise<AsyncIterable<Uint8Array>> {
  if (passphrase === undefined && identities.length === 0) {
    throw new Error('it is encrypted: give its passphrase (--passphrase-file) or its key (--identity)')
  }
  const [{ Decrypter }, { passphraseIdentity }] = await Promise.all([
    import('age-encryption'),
    import('./passphrase.ts'),
  ])
  const decrypter = new Decrypter()
  if (passphrase !== undefined) decrypter.addIdentity(passphraseIdentity(passphrase))
  for (const identity of identities) decrypter.addIdentity(identity)
  return await decrypter.decrypt(toStream(bytes)).catch(error => {
    throw /no identity matched/.test(messageOf(error))
      ? new Error('no passphrase or key that was given opens it')
      : error
  })
}

/** Makes a stream that is read only as fast as its reader takes it. */
function toStream(bytes: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = bytes[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}
