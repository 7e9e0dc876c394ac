import { fstatSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { excerpt } from '../../bounds.ts'
import { ApiError } from '../../errors.ts'
import type { EnvironmentProcesses } from '../../plugin-api/index.ts'
import { codeOf } from '../../read/error-code.ts'
import { isObject } from '../../read/json.ts'
import { type Call, lanes } from '../wire/call.ts'
import { Channel } from '../wire/channel.ts'
import { json, PROTOCOL } from '../wire/frame.ts'
import { GuestError, type GuestRequest } from '../wire/requests.ts'
import { type GuestSystem, serveSpawn } from './commands.ts'
import { sweepDrafts } from './draft.ts'
import { describe, list, makeDirectory, move, remove, sendFile } from './files.ts'
import { openLibc } from './libc.ts'
import { keepLimits } from './own-limits.ts'
import { createTrees } from './process-tree.ts'
import { answerProcesses, createGuestProcesses } from './processes.ts'
import { listenForProxy, type ProxyGate } from './proxy.ts'
import { startReaper } from './reaper.ts'
import { receiveFile } from './receive-file.ts'
import { relay } from './relay.ts'

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

interface Inside {
  system: GuestSystem
  /** One table for all servers that come and go. */
  processes: EnvironmentProcesses
}

function accept(socket: Socket, inside: Inside, gate: ProxyGate): void {
  const channel = new Channel(socket, {
    side: 'guest',
    onOpen(call, request) {
      // The server's requests are trusted; what it relays is not interpreted here.
      answer(call, request as GuestRequest, inside).then(
        result => call.close(result),
        error => call.close({ error: describeError(error) }),
      )
    },
  })
  gate.add(channel)
  channel.sendHello({ protocol: PROTOCOL })
}

async function answer(call: Call, request: GuestRequest, { system, processes }: Inside): Promise<object> {
  switch (request.op) {
    case 'spawn':
      await serveSpawn(call, request, system)
      return {}
    case 'read':
      await sendFile(call, request.path)
      return {}
    case 'write':
      return await receiveFile(call, request.path)
    case 'info':
      return { info: await describe(request.path) }
    case 'list':
      await call.send(lanes.down, json(await list(request.path, request.depth)))
      return {}
    case 'mkdir':
      return { made: await makeDirectory(request.path) }
    case 'rename':
      await move(request.from, request.to)
      return {}
    case 'remove':
      await remove(request.path)
      return {}
    case 'connect':
      await relay(call, request.port)
      return {}
    default:
      return await answerProcesses(call, request, processes)
  }
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
