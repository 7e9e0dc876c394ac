import { closeSync, openSync, readSync } from 'node:fs'
import type { Attempt } from './program.ts'
import { CallError } from './syscall.ts'

/** The error codes by which a sandbox refuses calls that it does not allow. */
const refusals = ['EPERM', 'EACCES', 'ENOSYS']
const READ_BYTES = 4096

/** Reads from this process's variables what a program works with. `say` gets each line that the program finds. */
export function openAttempt(
  variables: Readonly<Record<string, string | undefined>>,
  words: readonly string[],
  say: (line: string) => void,
): Attempt {
  const get = (name: string) => {
    const value = variables[name]
    if (value === undefined) throw new Error(`${name} is not set: threadbox selftest starts this`)
    return value
  }
  const secret = [...get('SELFTEST_SECRET')].reverse().join('')
  const found = (line: string) => say(line.replace(/[\r\n]/g, ' '))
  return {
    hostDirectory: get('SELFTEST_HOST_DIRECTORY'),
    peer: get('SELFTEST_PEER'),
    ...{ secret, words, found },
    refused(what, call, rightly = []) {
      try {
        const result = call()
        found(`${what} was not refused${typeof result === 'number' ? `: ${result}` : ''}`)
      } catch (error) {
        const code = codeOf(error)
        if (code === undefined) throw error
        const isLookedAt = error instanceof CallError && !refusals.includes(code) && !rightly.includes(code)
        if (isLookedAt) found(`${what} was looked at: ${code}`)
      }
    },
    seesNone(path) {
      if (readStart(path).includes(secret)) found(`${path} shows the secret`)
    },
  }
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/** Returns an empty text when the file cannot be read. */
function readStart(path: string): string {
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(READ_BYTES)
      return bytes.toString('latin1', 0, readSync(file, bytes))
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    return ''
  }
}
