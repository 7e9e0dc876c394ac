import { ApiError, type ErrorCode, isErrorCode } from '../../errors.ts'
import type { FileInfo, OutputBatch, ProcessExit, ProcessInfo } from '../../plugin-api/index.ts'
import { type JsonObject, objectOf, parseJson } from '../../read/json.ts'
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

export const fileInfosOf = (json: string): FileInfo[] => listOf(json).map(fileInfoOf)

export const processInfosOf = (json: string): ProcessInfo[] => listOf(json).map(processInfoOf)

function listOf(json: string): unknown[] {
  const list = parseJson(json)
  if (!Array.isArray(list)) throw broken('list')
  return list
}

export function processInfoOf(value: unknown): ProcessInfo {
  const { pid, name, command, stdin, pty, startedAt, endedAt, exit, outputStart, outputEnd } = fieldsOf(value)
  if ([pid, outputStart, outputEnd].some(number => !Number.isSafeInteger(number))) throw broken('process')
  if (typeof command !== 'string' || typeof stdin !== 'boolean' || typeof startedAt !== 'string')
    throw broken('process')
  const { columns, rows } = fieldsOf(pty)
  return {
    pid: pid as number,
    ...(typeof name === 'string' && { name }),
    command,
    stdin,
    ...(typeof columns === 'number' && typeof rows === 'number' && { pty: { columns, rows } }),
    startedAt,
    ...(typeof endedAt === 'string' && { endedAt }),
    ...(exit !== undefined && { exit: exitOf(exit) }),
    outputStart: outputStart as number,
    outputEnd: outputEnd as number,
  }
}

/** `runs` are the lengths of the pieces that `bytes` has, those of stderr below zero. Nothing is no answer to `wait`. */
export function batchOf(result: unknown, bytes: Buffer, wait: boolean): OutputBatch {
  const { offset, runs, exit } = resultOf(result)
  if (!Number.isSafeInteger(offset) || (offset as number) < 0 || !Array.isArray(runs)) throw broken('output')
  if (wait && runs.length === 0 && exit === undefined) throw broken('output')
  let at = 0
  const pieces = runs.map(run => {
    if (!Number.isSafeInteger(run) || run === 0) throw broken('output')
    const piece = bytes.subarray(at, at + Math.abs(run))
    at += Math.abs(run)
    return { stream: run < 0 ? ('stderr' as const) : ('stdout' as const), bytes: piece }
  })
  if (at !== bytes.byteLength) throw broken('output')
  return { offset: offset as number, pieces, ...(exit !== undefined && { exit: exitOf(exit) }) }
}

const broken = (what: string) => new ApiError('sandbox_unavailable', `The sandbox's guest sent a bad ${what}.`)
