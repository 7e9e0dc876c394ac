import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Whose containers are whose: a random id that a data directory gets with its first container, and keeps. */
export interface Identity {
  /** Undefined when nothing was ever made for this data directory. */
  find(): string | undefined
  make(): Promise<string>
  /**
   * As `make` where the data directory is there and this user's own; else that of nobody. Who only looks leaves no
   * directory behind, and no file that the server cannot read.
   */
  makeIfOwn(): Promise<string>
}

/** What has this is removed by who made it, or by nobody. */
const NOBODY = 'doctor'

const pattern = /^[0-9a-f]{32}$/

export function createIdentity(dataDirectory: string): Identity {
  const path = join(dataDirectory, 'docker-id')
  let known: string | undefined
  const find = () => {
    if (known !== undefined) return known
    const text = readText(path)?.trim()
    if (text !== undefined && !pattern.test(text)) throw new Error(`${path} is damaged`)
    known = text
    return text
  }
  const make = async () => {
    const present = find()
    if (present !== undefined) return present
    await mkdir(dataDirectory, { recursive: true, mode: 0o700 })
    const made = crypto.randomUUID().replaceAll('-', '')
    writeFileSync(path, `${made}\n`, { mode: 0o600, flag: 'wx', flush: true })
    known = made
    return made
  }
  return {
    find,
    make,
    async makeIfOwn() {
      const isOwn = statSync(dataDirectory, { throwIfNoEntry: false })?.uid === process.geteuid?.()
      return isOwn ? await make() : (find() ?? NOBODY)
    },
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
