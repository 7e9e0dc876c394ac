import { ApiError, type ErrorCode, isErrorCode } from '../../errors.ts'
import type { FileChange, FileInfo, OutputBatch, ProcessExit, ProcessInfo } from '../../plugin-api/index.ts'
import { type JsonObject, objectOf, parseJson } from '../../read/json.ts'
import { type Call, CallClosed, type Lane, lanes } from './call.ts'
import type { DirectRequest } from './requests.ts'

/** What a guest sends is checked here before anything of the server reads it. */

/** This is longer than any IP address. */
const MAX_ADDRESS = 64

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

/** The version that a guest has, and the oldest of servers that it works with. A guest of before there were versions says neither. */
export function versionsOf(hello: unknown): { version: number; oldestServer: number } {
  const { version, oldestServer } = fieldsOf(hello)
  return {
    version: typeof version === 'number' ? version : 0,
    oldestServer: typeof oldestServer === 'number' ? oldestServer : 0,
  }
}

/** Whether the guest replies to a read and a write with a descriptor, when it is asked to. Guests of earlier versions do not. */
export const offersDescriptors = (hello: unknown): boolean => fieldsOf(hello).offersDescriptors === true

/** The number of a descriptor, as the guest names it. Undefined when it offers none. */
export const descriptorOf = (reply: unknown): unknown => fieldsOf(reply).descriptor

/** What a guest says of a command's output; the descriptor is not checked. Throws for a lane that no output has. */
export function outputControlOf(message: unknown): { offered?: { lane: Lane; descriptor: unknown }; drain?: Lane } {
  const { offered, drain } = fieldsOf(message)
  if (offered !== undefined) {
    const { lane, descriptor } = fieldsOf(offered)
    return { offered: { lane: outputLaneOf(lane), descriptor } }
  }
  return drain === undefined ? {} : { drain: outputLaneOf(drain) }
}

function outputLaneOf(value: unknown): Lane {
  if (value !== lanes.down && value !== lanes.error) throw broken('lane')
  return value
}

/** What a guest opens a call with. Throws when it is anything but a connection of a program inside. */
export function outletRequestOf(request: unknown): { op: 'proxy' | 'ssh-agent' } | DirectRequest {
  const { op, address, port } = fieldsOf(request)
  if (op === 'proxy' || op === 'ssh-agent') return { op }
  if (op !== 'direct' || typeof address !== 'string' || address.length > MAX_ADDRESS) throw broken('request')
  if (!Number.isSafeInteger(port)) throw broken('request')
  return { op, address, port: port as number }
}

/** The numbers of sockets that a guest lends, as it names them. */
export function lentSocketsOf(reply: unknown): { route: unknown; netfilter: unknown } {
  const { route, netfilter } = fieldsOf(reply)
  return { route, netfilter }
}

/** The path of a socket inside. Throws what the guest refused the call with. */
export function pathOf(result: unknown): string {
  const { path } = resultOf(result)
  if (typeof path !== 'string' || !/^\/[\w./-]{1,100}$/.test(path)) throw broken('path')
  return path
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
  if (typeof signal !== 'string') return { exitCode: exitCode as number }
  if (!/^SIG\w{1,10}$/.test(signal)) throw broken('signal')
  return { exitCode: exitCode as number, signal }
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
  const texts = [name, path, permissions, owner, group]
  if (texts.some(text => typeof text !== 'string') || !isTime(modifiedTime)) throw broken('file information')
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
    modifiedTime,
    ...(typeof symlinkTarget === 'string' && { symlinkTarget }),
    ...(typeof info.resolvedTarget === 'string' && { resolvedTarget: info.resolvedTarget }),
    ...(info.attributes !== undefined && { attributes: attributesOf(info.attributes) }),
  }
}

function attributesOf(value: unknown): Record<string, string> {
  const texts = Object.entries(fieldsOf(value))
  if (texts.some(([, text]) => typeof text !== 'string')) throw broken('file attribute')
  return Object.fromEntries(texts) as Record<string, string>
}

const changeTypes: ReadonlySet<unknown> = new Set(['create', 'write', 'remove', 'rename', 'chmod'])

/** Reads a line that a watch sends. */
export function fileChangeOf(line: string): FileChange {
  const { name, type } = fieldsOf(parseJson(line))
  if (typeof name !== 'string' || !changeTypes.has(type)) throw broken('file change')
  return { name, type: type as FileChange['type'] }
}

export const fileInfosOf = (json: string): FileInfo[] => listOf(json).map(fileInfoOf)

export const processInfosOf = (json: string): ProcessInfo[] => listOf(json).map(processInfoOf)

function listOf(json: string): unknown[] {
  const list = parseJson(json)
  if (!Array.isArray(list)) throw broken('list')
  return list
}

/** A page cannot draw a time that is not a number. */
const isTime = (value: unknown): value is string => typeof value === 'string' && !Number.isNaN(Date.parse(value))

export function processInfoOf(value: unknown): ProcessInfo {
  const { pid, name, command, stdin, pty, startedAt, endedAt, exit, outputStart, outputEnd } = fieldsOf(value)
  if ([pid, outputStart, outputEnd].some(number => !Number.isSafeInteger(number))) throw broken('process')
  if (typeof command !== 'string' || typeof stdin !== 'boolean' || !isTime(startedAt)) throw broken('process')
  if (typeof endedAt === 'string' && !isTime(endedAt)) throw broken('process')
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
