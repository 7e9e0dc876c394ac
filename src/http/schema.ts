import { type Static, Type } from '@sinclair/typebox'
import { bounds } from '../bounds.ts'

/** Field types that more than one resource has. Bodies may bring more keys than these: they are ignored. */

export const AbsolutePath = Type.String({
  pattern: '^/[^\\0]*$',
  maxLength: bounds.path,
  description: 'An absolute path inside the sandbox.',
})

export const isAbsolutePath = (path: string): boolean => path.length <= bounds.path && /^\/[^\0]*$/.test(path)

/** A command line for the shell. */
export const CommandLine = Type.String({ minLength: 1, maxLength: bounds.argument, pattern: '^[^\\0]*$' })

/** A program and its arguments. */
export const Arguments = Type.Array(Type.String({ maxLength: bounds.argument, pattern: '^[^\\0]*$' }), {
  minItems: 1,
  maxItems: bounds.arguments,
})

export const Variables = Type.Record(
  Type.String({ pattern: `^[A-Za-z_][A-Za-z0-9_]{0,${bounds.variableName - 1}}$` }),
  Type.String({ maxLength: bounds.argument, pattern: '^[^\\0]*$' }),
  {
    additionalProperties: false,
    maxProperties: bounds.variables,
    description: 'Variable names to values.',
  },
)

/** Path to content, each path yet to be looked at. */
export const FileContents = Type.Record(Type.String(), Type.String({ maxLength: bounds.bodyBytes }), {
  maxProperties: bounds.files,
})

export const Slug = Type.String({ maxLength: bounds.slug })

/** Of anything that has one. */
export const Id = Type.String({ maxLength: bounds.id })

/** Who a key acts for. A token acts for its own user, whatever is said here. */
export const ExternalUserId = Type.String({
  maxLength: bounds.id,
  description: 'The end user that it is for: a token made with this userId sees it, and those of other users do not.',
})

/** Of a closed list, or of one that may grow. */
export const Word = Type.String({ maxLength: bounds.word })

/** A day or moment of ISO 8601. */
export const Moment = Type.String({ maxLength: bounds.moment, description: 'ISO 8601' })

export const SandboxParams = Type.Object({ sandboxId: Type.String() })
export type SandboxParams = Static<typeof SandboxParams>

export const ProcessParams = Type.Object({
  sandboxId: Type.String(),
  pid: Type.String({ pattern: '^[1-9][0-9]{0,9}$' }),
})

/** Of a query. */
export const Flag = Type.Union([Type.Literal('true'), Type.Literal('false')])

/** A byte offset in a process's output. */
export const Offset = Type.String({ pattern: '^[0-9]{1,15}$' })

export const ThreadParams = Type.Object({ sandboxId: Type.String(), threadId: Type.String() })
