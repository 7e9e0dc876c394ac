import { statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { findOwnId, keepOwnId } from '../../src/disk/own-id.ts'

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

const FILE = 'docker-id'

const pattern = /^[0-9a-f]{32}$/

export function createIdentity(dataDirectory: string): Identity {
  let known: string | undefined
  const find = () => {
    if (known !== undefined) return known
    const text = findOwnId(dataDirectory, FILE)
    if (text !== undefined && !pattern.test(text)) throw new Error(`${join(dataDirectory, FILE)} is damaged`)
    known = text
    return text
  }
  const make = async () => {
    const present = find()
    if (present !== undefined) return present
    await mkdir(dataDirectory, { recursive: true, mode: 0o700 })
    const made = crypto.randomUUID().replaceAll('-', '')
    keepOwnId(dataDirectory, FILE, made)
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
