import type { JsonObject } from '../../read/json.ts'
import type { ToolInfo } from './bundle.ts'

/** Between the process that keeps the tools and the one that runs them, which holds what somebody else wrote. */

export type ToRunner = { id: number; tool: string; input: unknown } | { cancel: number }

export type FromRunner =
  | { tools: ToolInfo[]; description: JsonObject }
  | { failed: string }
  | { id: number; result: ToolResult }

/** As MCP has it. */
export interface ToolResult {
  content: JsonObject[]
  isError?: boolean
}

export const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })
