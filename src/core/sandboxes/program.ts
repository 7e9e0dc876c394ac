import { bounds, excerpt } from '../../bounds.ts'
import { ApiError } from '../../errors.ts'

/** What Linux counts for each: the `=`, and the zero at the end. */
const VARIABLE_BYTES = 2

/**
 * Throws invalid_request when a program could not be started with these, all together. Linux would only say that the
 * list of arguments is too long.
 */
export function assertStartable({
  command = [],
  env = {},
}: {
  command?: string | readonly string[]
  env?: Readonly<Record<string, string>>
}): void {
  let bytes = 0
  for (const [name, value] of Object.entries(env)) {
    const size = Buffer.byteLength(name) + Buffer.byteLength(value) + VARIABLE_BYTES
    if (size > bounds.argument + 1)
      throw tooLarge('envs', `${excerpt(name)} and its value have more than ${bounds.argument} bytes`)
    bytes += size
  }
  if (bytes > bounds.variablesBytes) {
    throw tooLarge(
      'envs',
      `all variables together, with those of the sandbox, have more than ${bounds.variablesBytes} bytes`,
    )
  }
  const words = typeof command === 'string' ? [command] : command
  const sizes = words.map(word => Buffer.byteLength(word) + 1)
  if (sizes.some(size => size > bounds.argument + 1))
    throw tooLarge('command', `a word has more than ${bounds.argument} bytes`)
  if (sizes.reduce((sum, size) => sum + size, 0) > bounds.argumentsBytes) {
    throw tooLarge('command', `has more than ${bounds.argumentsBytes} bytes`)
  }
}

const tooLarge = (field: string, what: string) => new ApiError('invalid_request', `${field}: ${what}`, { field })
