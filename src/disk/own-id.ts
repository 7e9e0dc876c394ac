import { readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '../read/error-code.ts'
import { replaceFile } from './lasting-files.ts'

/**
 * The id in a file of a data directory, by which what it has elsewhere is known as its own. Undefined when there is none, and in
 * a copy of a data directory that is still where it was: what that one has is not the copy's. A directory that was moved keeps it.
 */
export function findOwnId(dataDirectory: string, file: string): string | undefined {
  const found = read(dataDirectory, file)
  if (!found) return undefined
  const here = realpathSync(dataDirectory)
  if (found.home === here) return found.id
  if (found.home !== undefined && read(found.home, file)?.id === found.id && !isSame(found.home, here)) return undefined
  try {
    keepOwnId(dataDirectory, file, found.id)
  } catch {
    // A command that only reads may have no right to write; the server has.
  }
  return found.id
}

/** Remembers it with where the directory is. */
export const keepOwnId = (dataDirectory: string, file: string, id: string): void =>
  replaceFile(join(dataDirectory, file), `${id}\n${realpathSync(dataDirectory)}\n`)

/** Files of earlier versions do not say where they were made. */
function read(directory: string, file: string): { id: string; home: string | undefined } | undefined {
  try {
    const [id = '', home] = readFileSync(join(directory, file), 'utf8').split('\n')
    return { id: id.trim(), home: home || undefined }
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [statSync(one), statSync(other)]
  return a.dev === b.dev && a.ino === b.ino
}
