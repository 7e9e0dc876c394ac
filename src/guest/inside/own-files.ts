import { existsSync } from 'node:fs'
import { readlink, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { GuestError } from '../wire/requests.ts'

/**
 * Whether the kernel's name of a file is in /proc's directory of this process, of one of its threads or of process 1. The
 * guest is let into these where no other process inside is: they have its memory, its variables and its descriptors.
 */
export function isOwn(path: string): boolean {
  const [, id] = /^\/proc\/(\d+)(?:\/|$)/.exec(path) ?? []
  return id !== undefined && (id === '1' || existsSync(`/proc/self/task/${id}`))
}

/** Throws for an open file of this process's own. Asked after the open: a link may have been changed before. */
export async function assertNotOwn(fd: number, path: string): Promise<void> {
  if (isOwn(await readlink(`/proc/self/fd/${fd}`))) throw refusal(path)
}

/** Throws for a path that leads to, or is itself, a file of this process's own. */
export async function assertNotOwnPath(path: string): Promise<void> {
  const [target, parent] = await Promise.all([path, dirname(path)].map(each => realpath(each).catch(() => '')))
  if (isOwn(target ?? '') || (parent && isOwn(join(parent, basename(path))))) throw refusal(path)
}

const refusal = (path: string) => new GuestError('invalid_request', `It belongs to the sandbox's guest: ${path}`)
