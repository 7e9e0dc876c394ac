import { bounds } from '../../../bounds.ts'
import type { ProcessExit, ProcessInfo, TerminalSize } from '../../../plugin-api/index.ts'
import { type JsonObject, objectOf } from '../../../read/json.ts'
import { ConnectError } from '../connect/error.ts'

/** A program to start, as a request describes it. */
export interface Start {
  command: [string, ...string[]]
  envs: Record<string, string>
  cwd?: string
  pty?: TerminalSize
  tag?: string
  /** True also when the request does not say, as old clients do not. */
  stdin: boolean
}

/** Names a process, either by its pid or by its tag. */
export type Selector = { pid: number } | { tag: string }

export interface Input {
  kind: 'stdin' | 'pty'
  bytes: Uint8Array
}

const MAX_CELLS = 9999

const wrong = (what: string) => new ConnectError('invalid_argument', what)

/** Like the functions below, this throws invalid_argument for a message of the wrong form. */
export function startOf({ process, pty, tag, stdin }: JsonObject): Start {
  const { cmd, args = [], envs = {}, cwd } = objectOf(process) ?? {}
  if (typeof cmd !== 'string' || cmd === '') throw wrong('process.cmd: required')
  if (!isTexts(args)) throw wrong('process.args: must be a list of texts')
  const variables = objectOf(envs)
  if (!variables || !isTexts(Object.values(variables))) throw wrong('process.envs: must be texts by name')
  for (const [name, value] of Object.entries(variables)) {
    if (!/^[^=\0]+$/.test(name) || String(value).includes('\0'))
      throw wrong('process.envs: a name or a value that no variable can have')
  }
  if ([cmd, ...args].some(word => word.includes('\0'))) throw wrong('process: a word has the character U+0000')
  if (cwd !== undefined && cwd !== null && typeof cwd !== 'string') throw wrong('process.cwd: must be a text')
  if (tag !== undefined && tag !== null && (typeof tag !== 'string' || tag.length > bounds.id))
    throw wrong(`tag: must be a text of at most ${bounds.id} characters`)
  const size = pty === undefined || pty === null ? undefined : sizeOf(objectOf(pty))
  return {
    command: [cmd, ...args],
    envs: variables as Record<string, string>,
    stdin: stdin !== false,
    ...(typeof cwd === 'string' && cwd !== '' && { cwd }),
    ...(typeof tag === 'string' && { tag }),
    ...(size && { pty: size }),
  }
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(each => typeof each === 'string')

export function sizeOf(pty: JsonObject | undefined): TerminalSize {
  const { cols, rows } = objectOf(pty?.size) ?? {}
  const isCells = (value: unknown): value is number =>
    Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_CELLS
  if (!isCells(cols) || !isCells(rows)) throw wrong(`pty.size: cols and rows must be numbers from 1 to ${MAX_CELLS}`)
  return { columns: cols, rows }
}

export function selectorOf({ process }: JsonObject): Selector {
  const { pid, tag } = objectOf(process) ?? {}
  if (typeof tag === 'string') return { tag }
  const number = typeof pid === 'string' && /^\d{1,10}$/.test(pid) ? Number(pid) : pid
  if (!Number.isSafeInteger(number) || Number(number) < 1) throw wrong('process: wants a pid or a tag')
  return { pid: Number(number) }
}

export function inputOf({ input }: JsonObject): Input {
  const { stdin, pty } = objectOf(input) ?? {}
  const text = stdin ?? pty
  if (typeof text !== 'string') throw wrong('input: wants stdin or pty')
  return { kind: stdin === undefined ? 'pty' : 'stdin', bytes: Buffer.from(text, 'base64') }
}

/** Reads a signal in both forms that protobuf's JSON has for an enumeration. */
export function signalOf({ signal }: JsonObject): NodeJS.Signals {
  if (signal === 'SIGNAL_SIGKILL' || signal === 9) return 'SIGKILL'
  if (signal === 'SIGNAL_SIGTERM' || signal === 15) return 'SIGTERM'
  throw wrong('signal: must be SIGNAL_SIGTERM or SIGNAL_SIGKILL')
}

/** Describes the end of a process in the words of Go's runtime, on which clients rely. */
export function endOf({ exitCode, signal }: ProcessExit): object {
  if (signal === undefined) {
    const status = `exit status ${exitCode}`
    return { exitCode, exited: true, status, ...(exitCode !== 0 && { error: status }) }
  }
  const status = `signal: ${signalWords[signal] ?? signal}`
  return { exitCode: -1, exited: false, status, error: status }
}

const signalWords: Readonly<Record<string, string>> = {
  SIGHUP: 'hangup',
  SIGINT: 'interrupt',
  SIGQUIT: 'quit',
  SIGILL: 'illegal instruction',
  SIGABRT: 'aborted',
  SIGFPE: 'floating point exception',
  SIGKILL: 'killed',
  SIGSEGV: 'segmentation fault',
  SIGPIPE: 'broken pipe',
  SIGALRM: 'alarm clock',
  SIGTERM: 'terminated',
}

/** Describes a running process for a list, with the command that it was started with, if that is known. */
export function listedOf({ pid, name, command }: ProcessInfo, known: Start | undefined): object {
  const [cmd = '', ...args] = known?.command ?? wordsOf(command)
  const config = { cmd, args, envs: known?.envs ?? {}, ...(known?.cwd !== undefined && { cwd: known.cwd }) }
  return { config, pid, ...(name !== undefined && { tag: name }) }
}

/** Splits a line into the words that it was joined from. A shell's command stays one line. */
function wordsOf(line: string): string[] {
  const shell = '/bin/bash -l -c '
  return line.startsWith(shell) ? ['/bin/bash', '-l', '-c', line.slice(shell.length)] : line.split(' ')
}
