import { dlopen, FFIType, ptr } from 'bun:ffi'
import { constants as files, openSync } from 'node:fs'
import { constants } from 'node:os'

/** A program to start, and its descriptors. */
export interface Program {
  /** The first word is a path, or a name that is looked up in the PATH of `env`. */
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
  /** Absent when the program reads end of file at once. */
  stdin?: number
  stdout: number
  stderr: number
  /** The terminal that controls the program's session. */
  terminal?: string
}

/**
 * Starts a program as the leader of a session of its own, with no descriptor but those that it is given, and gives its pid.
 * Throws an error with the code of Linux when that is not possible.
 *
 * By libc and not by Bun, which watches each child by a descriptor of its own: a command costs half of the guest's time then.
 */
export type StartProgram = (program: Program) => number

const SETSIGDEF = 0x04
const SETSIGMASK = 0x08
const SETSID = 0x80

/** This is larger than each of libc's structures on every architecture. */
const OPAQUE_BYTES = 512
const FIRST_OTHER = 3

export function openStartProgram(): StartProgram {
  const { i32, u32, pointer } = FFIType
  const { symbols: libc } = dlopen('libc.so.6', {
    posix_spawn: { args: [pointer, pointer, pointer, pointer, pointer, pointer], returns: i32 },
    posix_spawnattr_init: { args: [pointer], returns: i32 },
    posix_spawnattr_setflags: { args: [pointer, i32], returns: i32 },
    posix_spawnattr_setsigdefault: { args: [pointer, pointer], returns: i32 },
    posix_spawnattr_setsigmask: { args: [pointer, pointer], returns: i32 },
    posix_spawn_file_actions_init: { args: [pointer], returns: i32 },
    posix_spawn_file_actions_destroy: { args: [pointer], returns: i32 },
    posix_spawn_file_actions_addchdir_np: { args: [pointer, pointer], returns: i32 },
    posix_spawn_file_actions_addclosefrom_np: { args: [pointer, i32], returns: i32 },
    posix_spawn_file_actions_adddup2: { args: [pointer, i32, i32], returns: i32 },
    posix_spawn_file_actions_addopen: { args: [pointer, i32, pointer, i32, u32], returns: i32 },
  })
  const [attributes, actions] = [opaque(), opaque()]
  const [everySignal, noSignal] = [opaque().fill(0xff), opaque()]
  libc.posix_spawnattr_init(ptr(attributes))
  libc.posix_spawnattr_setflags(ptr(attributes), SETSIGDEF | SETSIGMASK | SETSID)
  libc.posix_spawnattr_setsigdefault(ptr(attributes), ptr(everySignal))
  libc.posix_spawnattr_setsigmask(ptr(attributes), ptr(noSignal))
  // The file is opened before anything else runs inside: a later file of that name might wait for a writer.
  const nothing = openSync('/dev/null', 'r')
  const pid = new Int32Array(1)
  /** libc has pointers to this memory, which the garbage collector does not see. */
  const held = new Set<unknown>()

  return ({ argv, env, cwd, stdin = nothing, stdout, stderr, terminal }) => {
    const [directory, path] = [text(cwd), text(pathOf(argv[0] ?? '', env, cwd))]
    const terminalPath = terminal === undefined ? undefined : text(terminal)
    const [words, variables] = [vector(argv), vector(Object.entries(env).map(([name, value]) => `${name}=${value}`))]
    held.add(path).add(words).add(variables)
    libc.posix_spawn_file_actions_init(ptr(actions))
    try {
      libc.posix_spawn_file_actions_addchdir_np(ptr(actions), ptr(directory))
      for (const [to, from] of [stdin, stdout, stderr].entries())
        libc.posix_spawn_file_actions_adddup2(ptr(actions), from, to)
      // The leader of a session that opens a terminal has it. The descriptor itself is closed again with all others.
      const { O_RDWR, O_NONBLOCK } = files
      if (terminalPath)
        libc.posix_spawn_file_actions_addopen(ptr(actions), FIRST_OTHER, ptr(terminalPath), O_RDWR | O_NONBLOCK, 0)
      libc.posix_spawn_file_actions_addclosefrom_np(ptr(actions), FIRST_OTHER)
      const number = libc.posix_spawn(
        ptr(pid),
        ptr(path),
        ptr(actions),
        ptr(attributes),
        ptr(words.pointers),
        ptr(variables.pointers),
      )
      if (number !== 0) throw failure(number)
      return pid[0] ?? 0
    } finally {
      libc.posix_spawn_file_actions_destroy(ptr(actions))
      held.clear()
    }
  }
}

const opaque = () => Buffer.alloc(OPAQUE_BYTES)

const text = (value: string) => Buffer.from(`${value}\0`)

/** Makes C strings: a pointer into `bytes` for each text, and a null pointer. */
function vector(texts: readonly string[]): { pointers: BigUint64Array; bytes: Buffer } {
  if (texts.some(each => each.includes('\0'))) throw new Error('a word or a variable has the character U+0000')
  const bytes = Buffer.from(texts.map(each => `${each}\0`).join(''))
  const pointers = new BigUint64Array(texts.length + 1)
  const start = texts.length === 0 ? 0 : ptr(bytes)
  for (let index = 0, at = 0; index < texts.length; index++) {
    pointers[index] = BigInt(start + at)
    at = bytes.indexOf(0, at) + 1
  }
  return { pointers, bytes }
}

/** Finds the path of a program. Throws an error with the code of Linux. */
export function pathOf(program: string, { PATH = '' }: Readonly<Record<string, string>>, cwd: string): string {
  if (program.includes('/')) return program
  const path = Bun.which(program, { PATH, cwd })
  if (!path) throw failure(constants.errno.ENOENT)
  return path
}

function failure(number: number): Error {
  const [code] = Object.entries(constants.errno).find(([, each]) => each === number) ?? [`error ${number}`]
  return Object.assign(new Error(`it could not be started: ${code}`), { code })
}
