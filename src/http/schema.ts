import { type Static, Type } from '@sinclair/typebox'
import { bounds } from '../bounds.ts'

/** Field types that several resources share. Unknown keys of a body are ignored. */

const PATH = 'must be an absolute path, as /home/user/file'

/** For texts that Linux ends at a zero byte. */
export const NO_NUL = { pattern: '^[^\\0]*$', errorMessage: 'must not have the character U+0000' } as const

/** For names of environment variables. */
export const VARIABLE_NAME = 'a name must have letters, digits and underscores alone, and begin with no digit'

export const AbsolutePath = Type.String({
  pattern: '^/[^\\0]*$',
  maxLength: bounds.path,
  description: 'An absolute path inside the sandbox.',
  errorMessage: PATH,
})

export const isAbsolutePath = (path: string): boolean => path.length <= bounds.path && /^\/[^\0]*$/.test(path)

/** A command line for the shell. */
export const CommandLine = Type.String({ minLength: 1, maxLength: bounds.argument, ...NO_NUL })

/** A program and its arguments. */
export const Arguments = Type.Array(Type.String({ maxLength: bounds.argument, ...NO_NUL }), {
  minItems: 1,
  maxItems: bounds.arguments,
})

export const Variables = Type.Record(
  Type.String({ pattern: `^[A-Za-z_][A-Za-z0-9_]{0,${bounds.variableName - 1}}$` }),
  Type.String({ maxLength: bounds.argument, ...NO_NUL }),
  {
    additionalProperties: false,
    maxProperties: bounds.variables,
    description: 'Variable names to values.',
    errorMessage: VARIABLE_NAME,
  },
)

/** Paths to contents. The paths are not checked yet. */
export const FileContents = Type.Record(Type.String(), Type.String({ maxLength: bounds.bodyBytes }), {
  maxProperties: bounds.files,
})

export const Slug = Type.String({ maxLength: bounds.slug })

/** The id of any resource. */
export const Id = Type.String({ maxLength: bounds.id })

/** The end user that a request with a key is for. A token is always for its own user. */
export const ExternalUserId = Type.String({
  maxLength: bounds.id,
  description: 'The end user that it is for: a token made with this userId sees it, and those of other users do not.',
})

/** A name from a list, which may grow. */
export const Word = Type.String({ maxLength: bounds.word })

/** A day or moment of ISO 8601. */
export const Moment = Type.String({ maxLength: bounds.moment, description: 'ISO 8601' })

export const SandboxParams = Type.Object({ sandboxId: Type.String() })
export type SandboxParams = Static<typeof SandboxParams>

export const ProcessParams = Type.Object({
  sandboxId: Type.String(),
  pid: Type.String({ pattern: '^[1-9][0-9]{0,9}$' }),
})

/** The size of a page, in a query. */
export const PageSize = Type.String({
  pattern: '^[1-9][0-9]{0,2}$',
  errorMessage: 'must be a whole number from 1 to 999',
})

/** A boolean in a query. */
export const Flag = Type.Union([Type.Literal('true'), Type.Literal('false')])

/** A byte offset in a process's output. */
export const Offset = Type.String({ pattern: '^[0-9]{1,15}$', errorMessage: 'must be a number of bytes, 0 or more' })

export const ThreadParams = Type.Object({ sandboxId: Type.String(), threadId: Type.String() })
