import { createWriteStream } from 'node:fs'
import { chmod, mkdir, stat } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { wordsOf } from '../../errors.ts'
import type { Environment, FileInfo } from '../../plugin-api/index.ts'
import type { Copy } from './flags.ts'

const LEVELS = 64

/**
 * Copies files and directories of the environment to this machine. Links in directories are not copied, because a sandbox
 * must not decide where a file is written. Sparse files can have any size, so at most `maxBytes` are copied in total.
 * Returns a line for each path that could not be copied.
 */
export async function copyOut(
  environment: Environment,
  outs: readonly Copy[],
  { cwd, maxBytes }: { cwd: string; maxBytes: number },
): Promise<string[]> {
  const { files } = environment
  const bounded = boundTo(maxBytes)
  const problems = new Set<string>()
  const tell = (from: string, error: unknown) => problems.add(`--out ${from}: ${wordsOf(error)}`)
  for (const { from, to } of outs) {
    const inside = posix.resolve(cwd, from)
    try {
      const found = await files.info(inside)
      if (!found) throw new Error('no such file in the sandbox')
      if (found.type === 'file') await save(environment, inside, await placeFor(inside, to), found.mode, bounded)
      else {
        await mkdir(to, { recursive: true })
        for (const entry of await files.list(inside, LEVELS)) {
          // A path that cannot be copied, such as a FIFO, does not stop the others.
          await bring(environment, inside, entry, to, bounded).catch(error => tell(from, error))
        }
      }
    } catch (error) {
      tell(from, error)
    }
  }
  return [...problems]
}

type Bounded = (bytes: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array>

/** Passes up to this many bytes in total and throws beyond. The sizes that the sandbox reports are not trusted. */
function boundTo(maxBytes: number): Bounded {
  let left = maxBytes
  return async function* (bytes) {
    for await (const piece of bytes) {
      left -= piece.byteLength
      if (left < 0) throw new Error('more than the disk limit of the sandbox: see --disk-mb')
      yield piece
    }
  }
}

async function bring(
  environment: Environment,
  root: string,
  entry: FileInfo,
  to: string,
  bounded: Bounded,
): Promise<void> {
  if (entry.symlinkTarget !== undefined) return
  const place = join(to, relativeTo(root, entry.path))
  if (entry.type === 'dir') await mkdir(place, { recursive: true })
  else await save(environment, entry.path, place, entry.mode, bounded)
}

/** Refuses names from the sandbox that would lead out of our directory. */
function relativeTo(root: string, path: string): string {
  const base = root === '/' ? '/' : `${root}/`
  const rest = path.slice(base.length)
  const isBelow = path.startsWith(base) && rest.split('/').every(part => !['', '.', '..'].includes(part))
  if (!isBelow || rest.includes('\0')) throw new Error('the sandbox named a file outside of it')
  return rest
}

/** The target path: in an existing directory, the file keeps its name. */
async function placeFor(inside: string, to: string): Promise<string> {
  const present = await stat(to).catch(() => undefined)
  return present?.isDirectory() ? join(to, posix.basename(inside)) : to
}

async function save({ files }: Environment, inside: string, to: string, mode: number, bounded: Bounded): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  const { body } = await files.read(inside)
  await pipeline(Readable.from(bounded(body)), createWriteStream(to))
  if (mode & 0o100) await chmod(to, 0o755)
}
