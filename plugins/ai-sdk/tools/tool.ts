import { posix } from 'node:path'
import { type JSONSchema7, jsonSchema, type ToolSet } from 'ai'
import { z } from 'zod'
import type { Environment, Permissions } from '../../../src/plugin-api/index.ts'
import type { ToolOutput } from './output.ts'

/** What a tool knows of its run. */
export interface ToolContext {
  environment: Environment
  /** The working directory, an absolute path. */
  cwd: string
  env: Readonly<Record<string, string>>
  /** When it is aborted, the tool ends, with everything that it started. */
  signal: AbortSignal
  /** The programs that `probeSandbox` found in the sandbox. */
  programs: ReadonlySet<string>
  permissions: Permissions
  fetch(url: string, init?: RequestInit): Promise<Response>
  /** Shows progress to clients. The tool bounds how much. */
  progress(data: Readonly<Record<string, unknown>>): void
}

export interface Tool {
  name: string
  description: string
  inputSchema: ToolSet[string]['inputSchema']
  /** Whether it changes nothing, so that plan mode has it. */
  isReadOnly: boolean
  /** Whether its calls run alone and in order. Other calls of one answer run side by side. */
  runsAlone: boolean
  /** Runs a call with the model's unchecked input. Throws an error whose message explains the failure to the model. */
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
    // `run` checks the input: the SDK's own error message would repeat all of it.
    inputSchema: jsonSchema(shape as JSONSchema7),
    isReadOnly,
    runsAlone,
    async run(value, context) {
      const checked = input.safeParse(value)
      if (!checked.success) throw new Error(describeProblems(name, checked.error))
      return run(checked.data, context)
    },
  }
}

const describeProblems = (name: string, error: z.ZodError): string =>
  [
    `InputValidationError: ${name} was called with a wrong input:`,
    ...error.issues.slice(0, 10).map(({ path, message }) => `- ${path.join('.') || 'input'}: ${message}`),
  ].join('\n')

/** An absolute path in the sandbox. */
export const resolvePath = ({ cwd, env }: Pick<ToolContext, 'cwd' | 'env'>, path: string): string =>
  posix.resolve(cwd, path.replace(/^~(?=\/|$)/, env.HOME ?? '/home/user'))
