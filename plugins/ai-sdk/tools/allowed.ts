import type { TurnOptions } from '../../../src/plugin-api/index.ts'
import type { Tool } from './tool.ts'

/** Tools that rules for these names cover too. */
const groups: Readonly<Record<string, readonly string[]>> = {
  Read: ['Glob', 'Grep', 'LS'],
  Edit: ['Write', 'MultiEdit', 'NotebookEdit'],
}

/**
 * The tools that a turn may use: those that no rule of `deny` denies for every input. A rule of `disallowedTools` for some inputs of a tool, such as `Bash(rm:*)`, removes the whole tool: other inputs
 * could have the same effect. `mcp__SERVER` removes all tools of a server.
 */
export function allowedTools(
  tools: readonly Tool[],
  { permissionMode, disallowedTools = [], deny = [], allow = [] }: TurnOptions,
): Tool[] {
  const whole = deny.filter(rule => !rule.includes('(')).map(rule => rule.trim())
  const names = disallowedTools.map(rule => (rule.split('(', 1)[0] ?? '').trim())
  const rules = [...names, ...whole, ...whole.flatMap(rule => groups[rule] ?? [])]
  const isDisallowed = (name: string) =>
    rules.some(
      rule =>
        rule === name ||
        rule === '*' ||
        (rule.startsWith('mcp__') && name.startsWith(`${rule.replace(/__\*$/, '')}__`)),
    )
  const named = allow.map(rule => (rule.split('(', 1)[0] ?? '').trim())
  const isNamed = (name: string) => named.some(rule => rule === name || groups[rule]?.includes(name))
  return tools.filter(
    ({ name, isReadOnly }) => !isDisallowed(name) && (permissionMode !== 'plan' || isReadOnly || isNamed(name)),
  )
}
