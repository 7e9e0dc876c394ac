import type { TurnOptions } from '../../../src/plugin-api/index.ts'
import type { Tool } from './tool.ts'

/**
 * The tools that a turn may use. A rule for some inputs of a tool, such as `Bash(rm:*)`, takes the whole tool away: what
 * such a rule means to forbid could be done in other words. `mcp__SERVER` takes all of a server's.
 */
export function allowedTools(tools: readonly Tool[], { permissionMode, disallowedTools = [] }: TurnOptions): Tool[] {
  const rules = disallowedTools.map(rule => (rule.split('(', 1)[0] ?? '').trim())
  const isDisallowed = (name: string) =>
    rules.some(rule => rule === name || (rule.startsWith('mcp__') && name.startsWith(`${rule.replace(/__\*$/, '')}__`)))
  return tools.filter(({ name, isReadOnly }) => !isDisallowed(name) && (permissionMode !== 'plan' || isReadOnly))
}
