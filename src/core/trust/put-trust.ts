import { createHash, X509Certificate } from 'node:crypto'
import { rootCertificates } from 'node:tls'
import { runCommand } from '../../environment/run-command.ts'
import { ApiError } from '../../errors.ts'
import type { Environment } from '../../plugin-api/index.ts'
import { readBytes } from '../../read/bytes.ts'
import { hasCertificate, withAuthority } from './bundle.ts'
import { withJavaCertificate } from './java-store.ts'
import { AUTHORITY_FILE, BUNDLE_FILE, MARK_FILE } from './variables.ts'

/**
 * The system's certificate stores, by the paths that programs have built in: those of Debian and Alpine, Fedora, SUSE, and
 * OpenSSL itself.
 */
const systemStores = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** The programs that rewrite these stores, and the directories in which they look for more certificates. */
const sources = [
  {
    program: '/usr/sbin/update-ca-certificates',
    path: '/usr/local/share/ca-certificates/threadbox.crt',
    /** Debian's program runs this whenever it has written the store, also where its directory is the host's and is read-only. */
    hook: '/etc/ca-certificates/update.d/threadbox',
  },
  { program: '/usr/bin/update-ca-trust', path: '/etc/pki/ca-trust/source/anchors/threadbox.crt' },
]

const hook = `#!/bin/sh
store=/etc/ssl/certs/ca-certificates.crt
grep -qF "$(sed -n 2p ${AUTHORITY_FILE})" "$store" || cat ${AUTHORITY_FILE} >> "$store"
`

const MAX_STORE_BYTES = 8 * 1024 * 1024
const KEYTOOL_TIMEOUT_MS = 30_000

/**
 * Makes programs inside trust an authority: by a bundle for programs that are pointed to it, and in the system's and Java's
 * stores where the sandbox has them and they can be written. When that was done before, it changes nothing. Rejects when the
 * bundle cannot be written.
 */
export async function putTrust(
  { files, spawn }: Pick<Environment, 'files' | 'spawn'>,
  authority: string,
): Promise<void> {
  const mark = createHash('sha256').update(authority).digest('hex')
  if ((await readText(files, MARK_FILE)) === mark && (await files.info(BUNDLE_FILE))) return
  const former = await readText(files, AUTHORITY_FILE)
  const stores = await readStores(files)
  const own = stores.find(({ pem }) => hasCertificate(pem))?.pem ?? `${rootCertificates.join('\n')}\n`
  await Promise.all([
    files.write(AUTHORITY_FILE, Buffer.from(authority)),
    files.write(BUNDLE_FILE, Buffer.from(withAuthority(own, authority, former))),
  ])
  for (const { path } of stores) {
    // Two paths may lead to one file.
    const now = await readText(files, path)
    if (now) await tryTo(() => files.write(path, Buffer.from(withAuthority(now, authority, former))))
  }
  for (const source of sources) await tryTo(() => addToSource({ files, spawn }, source, authority))
  const certificate = new X509Certificate(authority).raw
  for (const path of await findJavaStores(files)) {
    await tryTo(() => addToJava({ files, spawn }, path, certificate))
  }
  await files.write(MARK_FILE, Buffer.from(mark))
}

/** Makes a file for a single command: the certificates that the command trusts, and the authority. Returns its text. */
export async function bundleFor(files: Environment['files'], authority: string, from?: string): Promise<string> {
  const given = from === undefined ? undefined : await readText(files, from)
  const roots = given ?? (await readStores(files)).find(({ pem }) => hasCertificate(pem))?.pem
  return withAuthority(roots ?? `${rootCertificates.join('\n')}\n`, authority, undefined)
}

type Files = Environment['files']

const readText = async (files: Files, path: string) => (await readFile(files, path))?.toString('utf8')

async function readStores(files: Files): Promise<{ path: string; pem: string }[]> {
  const found = await Promise.all(systemStores.map(async path => ({ path, pem: await readText(files, path) })))
  return found.flatMap(({ path, pem }) => (pem === undefined ? [] : [{ path, pem }]))
}

/** Undefined when the path does not exist or is no ordinary file of a fitting size. */
async function readFile(files: Files, path: string): Promise<Buffer | undefined> {
  try {
    const { body } = await files.read(path)
    return await readBytes(body, MAX_STORE_BYTES)
  } catch (error) {
    if (error instanceof ApiError && error.code !== 'sandbox_unavailable') return undefined
    throw error
  }
}

async function addToSource(
  { files, spawn }: Pick<Environment, 'files' | 'spawn'>,
  source: (typeof sources)[number],
  authority: string,
): Promise<void> {
  if (!(await files.info(source.program))) return
  try {
    await files.write(source.path, Buffer.from(authority))
  } catch (error) {
    if (source.hook === undefined || !(error instanceof ApiError)) throw error
    await files.write(source.hook, Buffer.from(hook))
    await runCommand({ spawn }, { command: ['chmod', '+x', source.hook] })
  }
}

/** A store that cannot be changed stays as it is: the variables name the bundle. */
async function tryTo(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === 'sandbox_unavailable' || error.code === 'disk_full') throw error
  }
}

/** Finds Debian's store for all its Javas, and the stores that each Java has for itself. */
async function findJavaStores(files: Files): Promise<string[]> {
  const parents = await Promise.all(['/usr/lib/jvm', '/opt/java', '/usr/local'].map(each => listNames(files, each)))
  const homes = parents.flat().filter(path => !path.startsWith('/usr/local/') || path.startsWith('/usr/local/openjdk'))
  const candidates = homes.flatMap(home => [`${home}/lib/security/cacerts`, `${home}/jre/lib/security/cacerts`])
  return ['/etc/ssl/certs/java/cacerts', ...candidates]
}

async function listNames(files: Files, directory: string): Promise<string[]> {
  if (!(await files.info(directory))) return []
  return (await files.list(directory)).map(({ path }) => path)
}

/** Adds a certificate with keytool, to a store whose format only Java writes. */
async function addToJava({ files, spawn }: Pick<Environment, 'files' | 'spawn'>, path: string, certificate: Buffer) {
  const store = await readFile(files, path)
  if (!store) return
  const next = withJavaCertificate(store, certificate, Date.now())
  if (next) return void (await files.write(path, next))
  const home = path.slice(0, path.indexOf('/lib/security')).replace(/\/jre$/, '')
  const keytool = `${home}/bin/keytool`
  if (!(await files.info(keytool))) return
  const about = ['-keystore', path, '-storepass', 'changeit', '-alias', 'threadbox', '-noprompt']
  const run = (...words: string[]) =>
    runCommand({ spawn }, { command: [keytool, ...words, ...about], timeoutMs: KEYTOOL_TIMEOUT_MS })
  await run('-delete')
  await run('-importcert', '-file', AUTHORITY_FILE)
}
