import { pathToFileURL } from 'node:url'
import { isObject, type JsonObject } from '../../read/json.ts'
import { type InputSchema, readInputSchema } from './schema.ts'
import { provideSdk } from './sdk.ts'

/** A tool as a model is told of it. */
export interface ToolInfo {
  name: string
  description: string
  inputSchema: JsonObject
}

export interface BundledTool extends ToolInfo {
  parse: InputSchema['parse']
  execute(input: unknown, context: { env: Record<string, string | undefined>; signal: AbortSignal }): unknown
}

export interface Bundle {
  tools: Map<string, BundledTool>
  /** What of the default export is JSON, its tools by name and description, and the names of its hooks. */
  description: JsonObject
}

/** Loads a bundle, which runs it. Throws when its default export is no agent. */
export async function loadBundle(path: string): Promise<Bundle> {
  provideSdk()
  const module: unknown = await import(pathToFileURL(path).href)
  const agent = isObject(module) || typeof module === 'object' ? (module as { default?: unknown }).default : undefined
  if (!isObject(agent)) throw new Error('its default export is no agent')
  const { tools: defined = {}, ...rest } = agent
  const tools = new Map<string, BundledTool>()
  for (const [name, tool] of Object.entries(isObject(defined) ? defined : {})) {
    tools.set(name, await readTool(name, tool))
  }
  const hooks = Object.keys(rest).filter(name => typeof rest[name] === 'function')
  const names = [...tools.values()].map(({ name, description }) => ({ name, description }))
  return { tools, description: { ...JSON.parse(JSON.stringify(rest)), tools: names, hooks } }
}

async function readTool(name: string, tool: unknown): Promise<BundledTool> {
  if (!isObject(tool) || typeof tool.execute !== 'function') throw new Error(`tool ${name}: it has no execute`)
  const { execute, description = '' } = tool
  const { json, parse } = await readInputSchema(tool.inputSchema)
  return {
    name,
    description: String(description),
    inputSchema: { ...json, type: 'object' },
    parse,
    execute: (input, context) => execute.call(tool, input, context),
  }
}
