import { type Static, Type } from '@sinclair/typebox'

/** Field types that more than one resource has. Bodies may bring more keys than these: they are ignored. */

export const AbsolutePath = Type.String({
  pattern: '^/[^\\0]*$',
  maxLength: 4096,
  description: 'An absolute path inside the sandbox.',
})

export const isAbsolutePath = (path: string): boolean => path.length <= 4096 && /^\/[^\0]*$/.test(path)

/** A command line for the shell. Linux takes no single argument of 128 KiB or more. */
export const CommandLine = Type.String({ minLength: 1, maxLength: 131_071, pattern: '^[^\\0]*$' })

/** A program and its arguments. */
export const Arguments = Type.Array(Type.String({ maxLength: 131_071, pattern: '^[^\\0]*$' }), {
  minItems: 1,
  maxItems: 10_000,
})

export const Variables = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
  Type.String({ pattern: '^[^\\0]*$' }),
  {
    additionalProperties: false,
    description: 'Variable names to values.',
  },
)

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
