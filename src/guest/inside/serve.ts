import { fstatSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { excerpt } from '../../bounds.ts'
import { ApiError } from '../../errors.ts'
import { codeOf } from '../../read/error-code.ts'
import { isObject } from '../../read/json.ts'
import { Channel } from '../wire/channel.ts'
import { PROTOCOL } from '../wire/frame.ts'
import { GuestError, type GuestRequest } from '../wire/requests.ts'
import { answerRequest, type Inside } from './answer-request.ts'
import type { GuestSystem } from './commands.ts'
import { sweepDrafts } from './draft.ts'
import { createGuestProcesses } from './guest-processes.ts'
import { openLibc } from './libc.ts'
import { keepLimits } from './own-limits.ts'
import { createTrees } from './process-tree.ts'
import { listenForProxy, type ProxyGate } from './proxy.ts'
import { startReaper } from './reaper.ts'

/** Serves calls on a listening socket that was passed as this descriptor. Throws when it was not. Never ends on its own. */
export function serveGuest(listenFd: number): void {
  if (!isSocket(listenFd)) throw new Error('the server starts the guest, inside a sandbox')
  createServer(openGuest()).listen({ fd: listenFd })
}

/** Makes this process the guest of its sandbox, before any command runs. Gives what takes a server's connections. */
export function openGuest(): (socket: Socket) => void {
  const libc = openLibc()
  libc.becomeUndumpable()
  libc.guardLimits()
  process.umask(0o022)
  sweepDrafts()
  const { THREADBOX_PROCESSES, THREADBOX_ENVIRONMENT } = process.env
  const system: GuestSystem = {
    libc,
    limits: keepLimits(),
    trees: createTrees(libc),
    reaper: startReaper(libc),
    maxProcesses: THREADBOX_PROCESSES ? BigInt(THREADBOX_PROCESSES) : undefined,
    ownVariables: THREADBOX_ENVIRONMENT ? JSON.parse(THREADBOX_ENVIRONMENT) : {},
  }
  const gate = listenForProxy()
  const inside = { system, processes: createGuestProcesses(system) }
  return socket => accept(socket, inside, gate)
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket()
  } catch {
    return false
  }
}

function accept(socket: Socket, inside: Inside, gate: ProxyGate): void {
  const channel = new Channel(socket, {
    side: 'guest',
    onOpen(call, request) {
      // The server's requests are trusted; what it relays is not interpreted here.
      answerRequest(call, request as GuestRequest, inside).then(
        result => call.close(result),
        error => call.close({ error: describeError(error) }),
      )
    },
  })
  gate.add(channel)
  channel.sendHello({ protocol: PROTOCOL })
}

function describeError(error: unknown): { code: string; message: string } {
  if (error instanceof GuestError || error instanceof ApiError) return { code: error.code, message: error.message }
  const code = codeOf(error) ?? ''
  const path = isObject(error) && typeof error.path === 'string' ? error.path : ''
  if (code === 'ENOENT') return { code: 'file_not_found', message: `No such file: ${excerpt(path)}` }
  if (code === 'ENOTDIR')
    return { code: 'file_not_found', message: `No such file: ${excerpt(path)} leads through what is no directory` }
  const where = path && `: ${excerpt(path)}`
  // A file may be as large as the disk, where that is no file system of its own.
  if (['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code)) {
    return { code: 'disk_full', message: `No space is left in the sandbox${where}` }
  }
  if (code === 'EIO') return { code: 'sandbox_unavailable', message: `The disk of the sandbox has failed${where}` }
  const known = refusals[code]
  return {
    code: 'invalid_request',
    message: known ? `${known}${where}` : `The operation failed: ${code || error}`,
  }
}

const refusals: Record<string, string> = {
  EISDIR: 'It is a directory',
  EEXIST: 'It exists already',
  ENOTEMPTY: 'The directory is not empty',
  ELOOP: 'Too many links',
  ENAMETOOLONG: 'The name is too long',
  EACCES: 'Permission denied',
  EPERM: 'Not permitted',
  EROFS: 'The file system is read-only',
  EBUSY: 'It is in use',
  EINVAL: 'It is not possible',
  EXDEV: 'It cannot be moved to another file system',
  // A FIFO that nobody reads, or a socket.
  ENXIO: 'Not a regular file',
  ETXTBSY: 'The file is being executed',
  EMFILE: 'The sandbox has too many files open',
  ENOMEM: 'The sandbox has no memory left',
}
