import { Type } from '@sinclair/typebox'
import { bounds } from '../../bounds.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { ClientTool } from '../../plugin-api/index.ts'
import { parseRule } from './rule.ts'
import { isOwnTool } from './tool-names.ts'

/** Schemas of the options that agents and chats share. */

export const RuleList = Type.Array(Type.String({ maxLength: bounds.permissionRule }), {
  maxItems: bounds.permissionRules,
  description:
    'Rules in Claude’s form, as `Bash(git push:*)`, `Read(src/**)`, `WebFetch(domain:example.com)`, `mcp__server`.',
})

export const StreamProfile = Type.Union([Type.Literal('contract'), Type.Literal('full'), Type.Literal('ai-7')], {
  description:
    'Which chunks a reply’s stream has: `contract` for every client, `full` for version 6 of the AI SDK, `ai-7`.',
})

export const ClientTools = Type.Record(
  Type.String({ pattern: `^[A-Za-z0-9_-]{1,${bounds.clientToolName}}$` }),
  Type.Object(
    {
      description: Type.String({ maxLength: bounds.clientToolDescription }),
      inputSchema: Type.Object(
        { type: Type.Literal('object') },
        { additionalProperties: true, description: 'A JSON schema of an object.' },
      ),
    },
    { additionalProperties: false },
  ),
  {
    additionalProperties: false,
    maxProperties: bounds.clientTools,
    description: 'Tools that the client executes, by name.',
    errorMessage: `a name must have 1 to ${bounds.clientToolName} letters, digits, hyphens and underscores`,
  },
)

/** Throws invalid_request that names the first malformed rule. */
export function assertRuleList(field: string, rules: readonly string[] = []): void {
  for (const [index, text] of rules.entries()) {
    try {
      parseRule(text)
    } catch (error) {
      throw new ApiError('invalid_request', `${field}.${index}: ${messageOf(error)}`, { field })
    }
  }
}

/** Throws invalid_request for a name that the server's own tools have, and for a schema that is too large. */
export function assertClientTools(field: string, tools: Readonly<Record<string, ClientTool>> = {}): void {
  for (const [name, { inputSchema }] of Object.entries(tools)) {
    const wrong = (what: string) => new ApiError('invalid_request', `${field}.${name}: ${what}`, { field })
    if (isOwnTool(name) || name in Object.prototype) throw wrong('the server has a tool of this name; choose another')
    const size = JSON.stringify(inputSchema).length
    if (size > bounds.clientToolSchema) throw wrong(`the schema has more than ${bounds.clientToolSchema} characters`)
  }
}
