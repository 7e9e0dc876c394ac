import { createWriteStream } from 'node:fs'
import { chmod, mkdir, stat } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { messageOf } from '../../errors.ts'
import type { Environment, FileInfo } from '../../plugin.ts'
import type { Copy } from './flags.ts'

const LEVELS = 64

/**
 * Brings files and directories of the environment to this machine. Links inside of a directory stay there: what a sandbox
 * chose must not decide where something is written. Gives what could not be brought, a line each.
 */
export async function copyOut(environment: Environment, outs: readonly Copy[], cwd: string): Promise<string[]> {
  const { files } = environment
  const problems: string[] = []
  for (const { from, to } of outs) {
    const inside = posix.resolve(cwd, from)
    try {
      const found = await files.info(inside)
      if (!found) throw new Error('no such file in the sandbox')
      if (found.type === 'file') await save(environment, inside, await placeFor(inside, to), found.mode)
      else {
        await mkdir(to, { recursive: true })
        for (const entry of await files.list(inside, LEVELS)) {
          // One that cannot be brought, such as a FIFO, keeps no other.
          await bring(environment, inside, entry, to).catch(error => {
            problems.push(`--out ${from}: ${messageOf(error)}`)
          })
        }
      }
    } catch (error) {
      problems.push(`--out ${from}: ${messageOf(error)}`)
    }
  }
  return problems
}

async function bring(environment: Environment, root: string, entry: FileInfo, to: string): Promise<void> {
  if (entry.symlinkTarget !== undefined) return
  const place = join(to, relativeTo(root, entry.path))
  if (entry.type === 'dir') await mkdir(place, { recursive: true })
  else await save(environment, entry.path, place, entry.mode)
}

/** The sandbox says what is in its directory: a name that would lead out of ours is refused. */
function relativeTo(root: string, path: string): string {
  const base = root === '/' ? '/' : `${root}/`
  const rest = path.slice(base.length)
  const isBelow = path.startsWith(base) && rest.split('/').every(part => !['', '.', '..'].includes(part))
  if (!isBelow || rest.includes('\0')) throw new Error('the sandbox named a file outside of it')
  return rest
}

/** Into a directory that is there, under its own name. */
async function placeFor(inside: string, to: string): Promise<string> {
  const present = await stat(to).catch(() => undefined)
  return present?.isDirectory() ? join(to, posix.basename(inside)) : to
}

async function save({ files }: Environment, inside: string, to: string, mode: number): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  const { body } = await files.read(inside)
  await pipeline(Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]), createWriteStream(to))
  if (mode & 0o100) await chmod(to, 0o755)
}
