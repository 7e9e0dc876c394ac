import { posix } from 'node:path'
import { type JSONSchema7, jsonSchema, type ToolSet } from 'ai'
import { z } from 'zod'
import type { Environment } from '../../../src/plugin-api/index.ts'
import type { ToolOutput } from './output.ts'

/** What a tool gets of its run. */
export interface ToolContext {
  environment: Environment
  /** Where relative paths begin, absolute. */
  cwd: string
  env: Readonly<Record<string, string>>
  /** Aborted: the tool ends, with all that it started. */
  signal: AbortSignal
  /** Names of programs that are in the sandbox, of those that the engine looks for. */
  programs: ReadonlySet<string>
  fetch(url: string, init?: RequestInit): Promise<Response>
  /** Shows something live. Bounded by the tool. */
  progress(data: Readonly<Record<string, unknown>>): void
}

export interface Tool {
  name: string
  description: string
  inputSchema: ToolSet[string]['inputSchema']
  /** Changes nothing: it is there in plan mode. */
  isReadOnly: boolean
  /** Calls of one answer run side by side, but those of such a tool alone and in order. */
  runsAlone: boolean
  /** The input is of the model, and not checked yet. Throws an error whose message tells the model what went wrong. */
  run(input: unknown, context: ToolContext): Promise<ToolOutput>
}

interface ToolDefinition<Schema extends z.ZodObject> extends Pick<Tool, 'name' | 'description'> {
  input: Schema
  isReadOnly?: boolean
  runsAlone?: boolean
  run(input: z.output<Schema>, context: ToolContext): Promise<ToolOutput>
}

export function defineTool<Schema extends z.ZodObject>({
  name,
  description,
  input,
  isReadOnly = false,
  runsAlone = false,
  run,
}: ToolDefinition<Schema>): Tool {
  const { $schema: _, ...shape } = z.toJSONSchema(input, { io: 'input' })
  return {
    name,
    description,
    // Checked in run: the SDK's own words for a wrong input repeat all of it.
    inputSchema: jsonSchema(shape as JSONSchema7),
    isReadOnly,
    runsAlone,
    async run(value, context) {
      const checked = input.safeParse(value)
      if (!checked.success) throw new Error(problemsOf(name, checked.error))
      return run(checked.data, context)
    },
  }
}

const problemsOf = (name: string, error: z.ZodError): string =>
  [
    `InputValidationError: ${name} was called with a wrong input:`,
    ...error.issues.slice(0, 10).map(({ path, message }) => `- ${path.join('.') || 'input'}: ${message}`),
  ].join('\n')

/** An absolute path in the sandbox. */
export const resolvePath = ({ cwd, env }: Pick<ToolContext, 'cwd' | 'env'>, path: string): string =>
  posix.resolve(cwd, path.replace(/^~(?=\/|$)/, env.HOME ?? '/home/user'))
