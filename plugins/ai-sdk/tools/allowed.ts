import type { TurnOptions } from '../../../src/plugin-api/index.ts'
import type { Tool } from './tool.ts'

/**
 * The tools that a turn may use. A rule for some inputs of a tool, such as `Bash(rm:*)`, removes the whole tool: other inputs
 * could have the same effect. `mcp__SERVER` removes all tools of a server.
 */
export function allowedTools(tools: readonly Tool[], { permissionMode, disallowedTools = [] }: TurnOptions): Tool[] {
  const rules = disallowedTools.map(rule => (rule.split('(', 1)[0] ?? '').trim())
  const isDisallowed = (name: string) =>
    rules.some(rule => rule === name || (rule.startsWith('mcp__') && name.startsWith(`${rule.replace(/__\*$/, '')}__`)))
  return tools.filter(({ name, isReadOnly }) => !isDisallowed(name) && (permissionMode !== 'plan' || isReadOnly))
}
