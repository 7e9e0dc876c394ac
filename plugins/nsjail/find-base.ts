import { statSync } from 'node:fs'
import { HOST_BASE, resolveBase } from './files/resolve-base.ts'
import type { Host } from './host/layout.ts'
import type { Installed } from './installed.ts'

/** A base that can be recognised: later its path may lead to another directory, or to other files. */
export interface FoundBase {
  path: string
  inode: number
  modifiedMs: number
}

/** Throws invalid_request when there is no such base. */
export async function findBase(
  { host, installed }: { host: Host; installed: Installed },
  name = HOST_BASE,
): Promise<FoundBase> {
  const path = name === HOST_BASE ? await installed.hostBase() : await resolveBase(host, name)
  const { ino, mtimeMs } = statSync(path)
  return { path, inode: ino, modifiedMs: mtimeMs }
}
