import { z } from 'zod'
import { isObject, type JsonObject } from '../../read/json.ts'

/** A tool's input as its bundle defines it: by zod 3 or 4, whichever the bundle brings, or as JSON Schema. */
export interface InputSchema {
  json: JsonObject
  /** The input as `execute` gets it. Throws an error that names what is wrong with it. */
  parse(input: unknown): Promise<unknown>
}

interface ZodLike {
  safeParseAsync(input: unknown): Promise<{ success: true; data: unknown } | { success: false; error: unknown }>
}

const isZod = (value: unknown): value is ZodLike =>
  isObject(value) && 'safeParseAsync' in value && typeof value.safeParseAsync === 'function'

export async function readInputSchema(schema: unknown): Promise<InputSchema> {
  if (isZod(schema)) {
    return {
      json: await jsonOf(schema),
      async parse(input) {
        const result = await schema.safeParseAsync(input)
        if (result.success) return result.data
        throw new Error(problemsOf(result.error))
      },
    }
  }
  return { json: isObject(schema) ? schema : { type: 'object' }, parse: async input => input }
}

async function jsonOf(schema: ZodLike): Promise<JsonObject> {
  if ('_zod' in schema) {
    const { $schema: _, ...json } = z.toJSONSchema(schema as unknown as z.ZodType, {
      io: 'input',
      unrepresentable: 'any',
    })
    return json
  }
  const { zodToJsonSchema } = await import('zod-to-json-schema')
  const converted: JsonObject = { ...zodToJsonSchema(schema as never, { $refStrategy: 'none' }) }
  const { $schema: _, ...json } = converted
  return json
}

/** Both versions list `issues` of `path` and `message`. */
function problemsOf(error: unknown): string {
  const issues = isObject(error) && Array.isArray(error.issues) ? error.issues : []
  const lines = issues.slice(0, 10).map(issue => {
    const { path, message } = isObject(issue) ? issue : {}
    return `- ${(Array.isArray(path) && path.join('.')) || 'input'}: ${String(message)}`
  })
  return ['The input is wrong:', ...lines].join('\n')
}
