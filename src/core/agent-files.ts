import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { AgentInput, AgentOptions, AgentSandbox } from '../db/agents.ts'
import { messageOf } from '../errors.ts'
import { fieldOf } from '../json.ts'
import type { Limits as SandboxLimits } from '../plugin.ts'
import { assertRules } from './networks.ts'

/** An object of these fields and no other: a mistyped name is told. */
const exact = <Fields extends TProperties>(fields: Fields) => Type.Object(fields, { additionalProperties: false })

const Slug = Type.String({ pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$', maxLength: 100 })

export const isSlug = (text: string): boolean => Value.Check(Slug, text)

const Path = Type.String({ pattern: '^/[^\\0]*$' })

const Limits = exact({
  memoryMb: Type.Optional(Type.Integer({ minimum: 0 })),
  processes: Type.Optional(Type.Integer({ minimum: 0 })),
  cpus: Type.Optional(Type.Number({ minimum: 0 })),
  diskMb: Type.Optional(Type.Integer({ minimum: 0 })),
})

const Dollars = Type.Optional(Type.Number({ minimum: 0 }))

const McpServer = Type.Union([
  exact({
    type: Type.Union([Type.Literal('http'), Type.Literal('sse')]),
    url: Type.String({ pattern: '^https?://' }),
    headers: Type.Optional(Type.Record(Type.String(), Type.String())),
  }),
  exact({
    type: Type.Literal('stdio'),
    command: Type.String({ minLength: 1 }),
    args: Type.Optional(Type.Array(Type.String())),
    env: Type.Optional(Type.Record(Type.String(), Type.String())),
  }),
])

const Acp = exact({
  preset: Type.Optional(Type.String({ minLength: 1 })),
  command: Type.Optional(Type.String({ minLength: 1 })),
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(Type.Record(Type.String(), Type.String())),
  mode: Type.Optional(Type.String({ minLength: 1 })),
  config: Type.Optional(Type.Record(Type.String(), Type.Union([Type.String(), Type.Boolean()]))),
})

const Options = exact({
  maxTurns: Type.Optional(Type.Integer({ minimum: 1 })),
  maxBudgetUsd: Dollars,
  maxSandboxBudgetUsd: Dollars,
  maxAgentBudgetUsd: Dollars,
  permissionMode: Type.Optional(Type.String()),
  disallowedTools: Type.Optional(Type.Array(Type.String())),
  mcpServers: Type.Optional(
    Type.Record(Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }), McpServer, { additionalProperties: false }),
  ),
  acp: Type.Optional(Acp),
  networkAllowOut: Type.Optional(Type.Array(Type.String())),
  networkDenyOut: Type.Optional(Type.Array(Type.String())),
})

const AgentFile = exact({
  slug: Slug,
  name: Type.Optional(Type.String({ minLength: 1 })),
  engine: Type.Optional(Type.String({ minLength: 1 })),
  model: Type.Optional(Type.String({ minLength: 1 })),
  systemPrompt: Type.Optional(Type.String()),
  options: Type.Optional(Options),
  sandbox: Type.Optional(
    exact({
      files: Type.Optional(Type.Record(Path, Type.String(), { additionalProperties: false })),
      envs: Type.Optional(
        Type.Record(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }), Type.String(), {
          additionalProperties: false,
        }),
      ),
      setup: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
      cwd: Type.Optional(Path),
      base: Type.Optional(Type.String({ minLength: 1 })),
      image: Type.Optional(Type.String({ minLength: 1 })),
      template: Type.Optional(Type.String({ minLength: 1 })),
      limits: Type.Optional(Limits),
      timeoutMs: Type.Optional(Type.Integer({ minimum: 1000 })),
    }),
  ),
})

/** The agents of a JSON file, or of every .json file of a directory. Throws one error with all that is wrong with them. */
export async function readAgentFiles(path: string): Promise<AgentInput[]> {
  const isDirectory = (await stat(path)).isDirectory()
  const names = isDirectory ? (await readdir(path)).filter(name => name.endsWith('.json')).sort() : []
  const files = isDirectory ? names.map(name => join(path, name)) : [path]
  const problems: string[] = []
  const agents: AgentInput[] = []
  for (const file of files) {
    try {
      agents.push(readAgent(JSON.parse(await readFile(file, 'utf8'))))
    } catch (error) {
      problems.push(`${file}: ${messageOf(error)}`)
    }
  }
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return agents
}

/** Throws with the first field that is wrong. */
export function readAgent(value: unknown): AgentInput {
  if (!Value.Check(AgentFile, value)) {
    const [first] = Value.Errors(AgentFile, value)
    throw new Error(`${fieldOf(first?.path ?? '') || 'agent'}: ${first?.message ?? 'not valid'}`)
  }
  const { slug, name = slug, engine = 'echo', model, systemPrompt, sandbox = {}, options = {} } = value
  assertRules('options.networkAllowOut', options.networkAllowOut ?? [])
  assertRules('options.networkDenyOut', options.networkDenyOut ?? [])
  return {
    slug,
    name,
    engine,
    ...(model !== undefined && { model }),
    ...(systemPrompt !== undefined && { systemPrompt }),
    sandbox: toSandbox(sandbox),
    options: options as AgentOptions,
  }
}

const toSandbox = ({
  files = {},
  envs = {},
  setup = [],
  limits = {},
  ...rest
}: NonNullable<Static<typeof AgentFile>['sandbox']>): AgentSandbox => ({
  files,
  envs,
  setup,
  limits: limits as SandboxLimits,
  ...(rest as Pick<AgentSandbox, 'cwd' | 'base' | 'image' | 'template' | 'timeoutMs'>),
})
