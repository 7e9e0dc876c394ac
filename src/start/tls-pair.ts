import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { TlsFiles } from '../core/config.ts'
import { wordsOf } from '../errors.ts'

/** A certificate with its chain, and its private key, as PEM. */
export interface TlsPair {
  cert: string
  key: string
}

const MAX_BYTES = 1024 * 1024
/** Permissions for everybody else, and for the group to write. Its readers may be meant. */
const OPEN_BITS = 0o027
const SOON_MS = 7 * 86_400_000

/** Reads a pair. Throws an error with the name of the setting and what is wrong; never with anything of the key. */
export function readTlsPair({ certFile, keyFile }: TlsFiles): TlsPair {
  const cert = readText('--tls-cert', certFile)
  const key = readText('--tls-key', keyFile)
  const certificate = attempt(`--tls-cert: ${certFile}`, 'holds no certificate in PEM', () => new X509Certificate(cert))
  assertChain(certFile, cert)
  const privateKey = attempt(`--tls-key: ${keyFile}`, 'holds no private key in PEM without a passphrase', () =>
    createPrivateKey(key),
  )
  if (!certificate.checkPrivateKey(privateKey))
    throw new Error(`--tls-key: ${keyFile} is not the key of the certificate in ${certFile}`)
  return { cert, key }
}

const BEGIN_CERTIFICATE = /(?=-----BEGIN CERTIFICATE-----)/

/** What follows the first certificate is sent to clients too: a file that is half written would leave them without. */
function assertChain(file: string, text: string): void {
  const parts = text.split(BEGIN_CERTIFICATE).filter(part => part.startsWith('-----BEGIN'))
  for (const [index, part] of parts.entries())
    attempt(
      `--tls-cert: ${file}`,
      `holds no certificate in PEM at its place ${index + 1}`,
      () => new X509Certificate(part),
    )
}

/** What an operator should know of a pair that can be used. */
export function warningsOf({ cert }: TlsPair, { certFile, keyFile }: TlsFiles, now: Date): string[] {
  const warnings: string[] = []
  if ((statSync(keyFile).mode & OPEN_BITS) !== 0)
    warnings.push(`--tls-key: others on this machine may read or change ${keyFile}; chmod 640 it, or 600`)
  const until = Date.parse(new X509Certificate(cert).validTo)
  if (until < now.getTime()) warnings.push(`--tls-cert: ${certFile} has expired: browsers refuse it`)
  else if (until - now.getTime() < SOON_MS)
    warnings.push(`--tls-cert: ${certFile} expires at ${new Date(until).toISOString()}`)
  return warnings
}

function readText(setting: string, file: string): string {
  try {
    if (statSync(file).size > MAX_BYTES) throw new Error(`${file} is longer than 1 MB`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`${setting}: ${wordsOf(error)}`)
  }
}

function attempt<Value>(what: string, words: string, work: () => Value): Value {
  try {
    return work()
  } catch {
    // OpenSSL's words name a routine, and nothing of the file.
    throw new Error(`${what} ${words}`)
  }
}
