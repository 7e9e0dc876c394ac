import { type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { bounds, excerpt } from '../../bounds.ts'
import { messageOf } from '../../errors.ts'
import { codeOf } from '../../read/error-code.ts'
import { GuestError } from '../wire/requests.ts'

interface Attempt {
  program: string
  cwd: string
  maxProcesses: bigint | undefined
}

/** Why a command could not be started, in words: without the names of errors and of system calls. */
export function startRefused(error: unknown, attempt: Attempt): GuestError {
  const found = look(attempt.cwd)
  if (!found?.isDirectory()) {
    const what = found ? 'not a directory' : 'no such directory'
    return new GuestError('invalid_request', `cwd: ${what}: ${excerpt(attempt.cwd)}`)
  }
  const code = codeOf(error) ?? ''
  const isFull = code === 'EAGAIN' || code === 'ENOMEM'
  const reason = reasonOf(code, attempt) ?? excerpt(messageOf(error))
  return new GuestError(
    isFull ? 'sandbox_unavailable' : 'invalid_request',
    `The command could not be started: ${reason}`,
  )
}

/** Undefined also where the path leads through what is no directory. */
function look(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

function reasonOf(code: string, { program, cwd, maxProcesses }: Attempt): string | undefined {
  const name = excerpt(program)
  const found = program.includes('/') ? look(resolve(cwd, program)) : undefined
  switch (code) {
    case 'ENOENT':
      if (program === '') return 'its name is empty'
      if (found) return `what runs ${name} is not there: the interpreter that its first line names, or its loader`
      return program.includes('/') ? `no such program: ${name}` : `no such program in PATH: ${name}`
    case 'ENOTDIR':
      return `no such program: ${name}`
    case 'EACCES':
      return found?.isDirectory() ? `it is a directory: ${name}` : `permission denied: ${name} is not executable`
    case 'ENOEXEC':
      return `${name} is no program of this machine, nor does its first line name an interpreter`
    case 'ETXTBSY':
      return `${name} is being written`
    case 'E2BIG':
      return `its arguments and variables have more than ${bounds.argumentsBytes + bounds.variablesBytes} bytes`
    case 'EAGAIN':
      return `the sandbox has as many processes as it may${maxProcesses === undefined ? '' : `, ${maxProcesses}`}`
    case 'ENOMEM':
      return 'the sandbox has no memory left'
    default:
      return undefined
  }
}
