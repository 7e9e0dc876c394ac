import { ApiError, type ErrorCode, isErrorCode } from '../errors.ts'
import { type JsonObject, objectOf } from '../json.ts'
import type { FileInfo, ProcessExit } from '../plugin.ts'
import { type Call, CallClosed } from './call.ts'

/** What a guest sends is checked here before anything of the server reads it. */

const fieldsOf = (value: unknown): JsonObject => objectOf(value) ?? {}

/** The reply. Throws what the guest refused the call with. */
export const replyOf = (call: Call): Promise<unknown> =>
  call.reply.catch(error => {
    throw error instanceof CallClosed ? failureOf(error.result) : error
  })

export function protocolOf(hello: unknown): number {
  const { protocol } = fieldsOf(hello)
  return typeof protocol === 'number' ? protocol : 0
}

/** What a guest opens a call with. Throws when it is anything but a connection to the proxy. */
export function assertProxyRequest(request: unknown): void {
  if (fieldsOf(request).op !== 'proxy') throw broken('request')
}

export function pidOf(reply: unknown): number {
  const { pid } = fieldsOf(reply)
  if (!Number.isSafeInteger(pid)) throw broken('pid')
  return pid as number
}

export function sizeOf(result: unknown): number {
  const { size } = fieldsOf(result)
  if (!Number.isSafeInteger(size)) throw broken('size')
  return size as number
}

export function exitOf(result: unknown): ProcessExit {
  const { exitCode, signal, error } = fieldsOf(result)
  if (error !== undefined) throw failureOf(result)
  if (!Number.isSafeInteger(exitCode)) throw broken('exitCode')
  return { exitCode: exitCode as number, ...(typeof signal === 'string' && { signal }) }
}

/** The result of a call that may have been refused. Throws what it was refused with. */
export function resultOf(result: unknown): JsonObject {
  const fields = fieldsOf(result)
  if (fields.error !== undefined) throw failureOf(result)
  return fields
}

export function failureOf(result: unknown): ApiError {
  const { code, message } = fieldsOf(fieldsOf(result).error)
  const known: ErrorCode = typeof code === 'string' && isErrorCode(code) ? code : 'sandbox_unavailable'
  return new ApiError(known, typeof message === 'string' ? message.slice(0, 4096) : 'The sandbox refused.')
}

export function fileInfoOf(value: unknown): FileInfo {
  const info = fieldsOf(value)
  const { name, path, type, size, mode, permissions, owner, group, modifiedTime, symlinkTarget } = info
  const texts = [name, path, permissions, owner, group, modifiedTime]
  if (texts.some(text => typeof text !== 'string')) throw broken('file information')
  if (type !== 'file' && type !== 'dir') throw broken('file type')
  if (typeof size !== 'number' || typeof mode !== 'number') throw broken('file size')
  return {
    name: String(name),
    path: String(path),
    type,
    size,
    mode,
    permissions: String(permissions),
    owner: String(owner),
    group: String(group),
    modifiedTime: String(modifiedTime),
    ...(typeof symlinkTarget === 'string' && { symlinkTarget }),
  }
}

export function fileInfosOf(json: string): FileInfo[] {
  let list: unknown
  try {
    list = JSON.parse(json)
  } catch {
    throw broken('list')
  }
  if (!Array.isArray(list)) throw broken('list')
  return list.map(fileInfoOf)
}

const broken = (what: string) => new ApiError('sandbox_unavailable', `The sandbox's guest sent a bad ${what}.`)
