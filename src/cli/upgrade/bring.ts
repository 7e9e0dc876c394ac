import { createReadStream, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { isNoSpace, wordsOf } from '../../errors.ts'
import { UsageError } from '../command-line.ts'

/** Ten times the size of today's executable. */
const MAX_BYTES = 1024 * 1024 * 1024
const MAX_REDIRECTS = 5
const WITHIN_MS = 30 * 60_000

/**
 * Copies an executable from a file or a URL to a file that outlasts a loss of power. Returns its SHA-256. Throws, and leaves
 * nothing, when it is too large or its SHA-256 is not `sum`.
 */
export async function bring(from: string, to: string, sum: string | undefined): Promise<string> {
  if (sum !== undefined && !/^[0-9a-f]{64}$/i.test(sum)) throw new UsageError('--sha256: must be 64 hexadecimal digits')
  const isUrl = /^[a-z]+:\/\//i.test(from)
  if (isUrl && sum === undefined) throw new UsageError('--sha256: wanted with a URL')
  try {
    const found = await write(isUrl ? await download(from) : createReadStream(from), to)
    if (sum !== undefined && found !== sum.toLowerCase())
      throw new Error(`${from} has the SHA-256 ${found}, not ${sum}`)
    return found
  } catch (error) {
    rmSync(to, { force: true })
    if (isNoSpace(error)) throw new Error(`${to}: no space left on device. Nothing is changed.`)
    throw error
  }
}

async function write(chunks: AsyncIterable<Uint8Array>, to: string): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  rmSync(to, { force: true })
  const file = await open(to, 'wx', 0o700)
  try {
    let byteLength = 0
    for await (const chunk of chunks) {
      byteLength += chunk.byteLength
      if (byteLength > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes, which no threadbox is`)
      hash.update(chunk)
      await file.writeFile(chunk)
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return hash.digest('hex')
}

async function download(from: string): Promise<AsyncIterable<Uint8Array>> {
  let url = from
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    assertSafe(url)
    const answer = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(WITHIN_MS) }).catch(error => {
      throw new Error(`${url}: ${wordsOf(error)}`)
    })
    const location = answer.headers.get('location')
    if (answer.status >= 300 && answer.status < 400 && location !== null) {
      await answer.body?.cancel()
      url = new URL(location, url).href
      continue
    }
    if (!answer.ok || !answer.body) throw new Error(`${url}: answered ${answer.status}`)
    if (Number(answer.headers.get('content-length') ?? 0) > MAX_BYTES) {
      await answer.body.cancel()
      throw new Error(`${url}: it is larger than ${MAX_BYTES} bytes, which no threadbox is`)
    }
    return answer.body
  }
  throw new Error(`${from}: more than ${MAX_REDIRECTS} redirects`)
}

/** The checksum already proves the content; https also keeps the download private. */
function assertSafe(text: string): void {
  const url = URL.parse(text)
  if (url?.protocol === 'https:') return
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url?.hostname ?? '')
  if (url?.protocol !== 'http:' || !isLoopback) throw new UsageError(`${text}: must be https, or http to this machine`)
}
