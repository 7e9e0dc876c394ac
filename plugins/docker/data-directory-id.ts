import { statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { findOwnId, keepOwnId } from '../../src/disk/own-id.ts'

/** A random id that a data directory gets with its first container and keeps: its containers carry it as a label. */
export interface DataDirectoryId {
  /** Undefined when no container was ever made for this data directory. */
  find(): string | undefined
  make(): Promise<string>
  /**
   * As `make` when the data directory exists and belongs to this user, else a stand-in: a check leaves no directory behind, and
   * no file that the server cannot read.
   */
  makeIfOwn(): Promise<string>
}

/** The stand-in. No server adopts containers that carry it; the check that made them removes them. */
const STAND_IN_ID = 'doctor'

const FILE = 'docker-id'

const pattern = /^[0-9a-f]{32}$/

export function createDataDirectoryId(dataDirectory: string): DataDirectoryId {
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
    const created = crypto.randomUUID().replaceAll('-', '')
    keepOwnId(dataDirectory, FILE, created)
    known = created
    return created
  }
  return {
    find,
    make,
    async makeIfOwn() {
      const isOwn = statSync(dataDirectory, { throwIfNoEntry: false })?.uid === process.geteuid?.()
      return isOwn ? await make() : (find() ?? STAND_IN_ID)
    },
  }
}
