import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { migrations } from '../db/schema.ts'
import { readTar, type TarEntry } from '../disk/read-tar.ts'
import { messageOf } from '../errors.ts'
import type { Address } from './backup-place.ts'
import { CONTENTS, type Contents, isMemberName, MANIFEST, type Manifest, readContents, readManifest } from './format.ts'
import { AGE_SUFFIX, type Secrets, unseal } from './sealing.ts'
import { decompress } from './zstd.ts'

/** The longest list of members: that of a million sandboxes. */
const MAX_LIST_BYTES = 512 * 1024 * 1024
const MAX_MANIFEST_BYTES = 64 * 1024

export interface Extracted {
  manifest: Manifest
  contents: Contents
}

/**
 * Writes the files of a backup into an empty directory; only names that a backup may contain are accepted. Rejects when the
 * backup is cut short or altered, and when this version cannot restore it. The directory then has files that must not be used.
 * not to be used.
 */
export async function extract({ place, name = '' }: Address, secrets: Secrets, directory: string): Promise<Extracted> {
  try {
    const stored = await place.read(name)
    const packed = name.endsWith(AGE_SUFFIX) ? await unseal(stored, secrets) : stored
    return await extractMembers(decompress(packed), directory)
  } catch (error) {
    throw new Error(`${place.describe(name)}: ${messageOf(error)}`)
  }
}

async function extractMembers(bytes: AsyncIterable<Uint8Array>, directory: string): Promise<Extracted> {
  let manifest: Manifest | undefined
  let contents: Contents | undefined
  const found: Contents['members'] = {}
  for await (const entry of readTar(bytes, { sparse: true })) {
    const { name, type } = entry
    if (contents) throw new Error(`it has ${JSON.stringify(name)} after its end`)
    if (type !== 'file') throw new Error(`it has ${JSON.stringify(name)}, which is no file`)
    if (Object.hasOwn(found, name)) throw new Error(`it has ${JSON.stringify(name)} twice`)
    if (!manifest) {
      if (name !== MANIFEST) throw new Error('it is no backup of threadbox')
      const text = await readText(entry, MAX_MANIFEST_BYTES)
      manifest = readManifest(text, migrations.length)
      found[name] = { bytes: Buffer.byteLength(text), sha256: Bun.SHA256.hash(text, 'hex') }
    } else if (name === CONTENTS) contents = readContents(await readText(entry, MAX_LIST_BYTES))
    else if (isMemberName(name)) found[name] = await writeMember(entry, join(directory, name))
    else throw new Error(`it has ${JSON.stringify(name)}, which is no file of a backup`)
  }
  if (!manifest || !contents) throw new Error('it is cut short')
  assertSame(contents.members, found)
  return { manifest, contents }
}

function assertSame(written: Contents['members'], found: Contents['members']): void {
  for (const name of new Set([...Object.keys(written), ...Object.keys(found)])) {
    const [before, now] = [written[name], found[name]]
    if (!now) throw new Error(`${name} is missing`)
    if (before?.sha256 !== now.sha256 || before.bytes !== now.bytes) throw new Error(`${name} was altered`)
  }
}

async function readText({ name, body }: TarEntry, maxBytes: number): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.byteLength
    if (bytes > maxBytes) throw new Error(`${name} is too long`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

async function writeMember({ body, sparse }: TarEntry, path: string): Promise<{ bytes: number; sha256: string }> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const hash = new Bun.CryptoHasher('sha256')
  if (sparse) hash.update(sparse.bytes)
  let bytes = sparse?.bytes.byteLength ?? 0
  const file = await open(path, 'wx', 0o600)
  try {
    const places = sparse ? sparse.parts.values() : undefined
    let part = places?.next().value
    let at = part?.at ?? 0
    for await (const whole of body) {
      hash.update(whole)
      bytes += whole.byteLength
      let rest = whole
      while (rest.byteLength > 0) {
        while (part && at === part.at + part.length) {
          part = places?.next().value
          at = part?.at ?? 0
        }
        const length = part ? Math.min(rest.byteLength, part.at + part.length - at) : rest.byteLength
        await writeAt(file, rest.subarray(0, length), at)
        at += length
        rest = rest.subarray(length)
      }
    }
    if (sparse) await file.truncate(sparse.size)
    await file.sync()
  } finally {
    await file.close()
  }
  return { bytes, sha256: hash.digest('hex') }
}

async function writeAt(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, at + done)
    done += bytesWritten
  }
}
