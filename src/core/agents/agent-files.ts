import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { bounds, excerpt } from '../../bounds.ts'
import { assertRules } from '../../egress/rules.ts'
import { faultsOfLimits } from '../../environment/least-limits.ts'
import { ApiError, messageOf, wordsOf } from '../../errors.ts'
import type { AgentInput, AgentOptions, AgentSandbox } from '../../model/agent.ts'
import { isolations } from '../../model/isolation.ts'
import type { Limits as SandboxLimits } from '../../plugin-api/index.ts'
import { didYouMean } from '../../read/closest.ts'
import { faultOf } from '../../read/field-words.ts'
import { objectOf } from '../../read/json.ts'
import { readJson } from '../../read/json-text.ts'
import { assertClientTools, assertRuleList, ClientTools, RuleList, StreamProfile } from '../permissions/options.ts'
import { Bindings, readBindings } from '../secrets/bindings.ts'

/** An object of these fields and no other, so that a mistyped name is an error. */
const exact = <Fields extends TProperties>(fields: Fields) => Type.Object(fields, { additionalProperties: false })

const Slug = Type.String({
  pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
  maxLength: bounds.slug,
  errorMessage: 'must have small letters, digits and hyphens between them',
})

export const isSlug = (text: string): boolean => Value.Check(Slug, text)

/** The pattern bounds it also where it is a key. */
const Path = Type.String({ pattern: `^/[^\\0]{0,${bounds.path - 1}}$`, errorMessage: 'must be an absolute path' })

const Word = Type.String({ minLength: 1, maxLength: bounds.word })

const Name = Type.String({ minLength: 1, maxLength: bounds.name })

const Variables = Type.Record(
  Type.String({ pattern: `^[A-Za-z_][A-Za-z0-9_]{0,${bounds.variableName - 1}}$` }),
  Type.String({ maxLength: bounds.argument, pattern: '^[^\\0]*$', errorMessage: 'must not have the character U+0000' }),
  {
    additionalProperties: false,
    maxProperties: bounds.variables,
    errorMessage: 'a name must have letters, digits and underscores alone, and begin with no digit',
  },
)

/** The environment of a program: its variables may have any name. */
const Settings = Type.Record(
  Type.String({ pattern: `^[^=\\0]{1,${bounds.variableName}}$` }),
  Type.String({ maxLength: bounds.argument, pattern: '^[^\\0]*$', errorMessage: 'must not have the character U+0000' }),
  { additionalProperties: false, maxProperties: bounds.variables, errorMessage: 'must have names of variables' },
)

const Arguments = Type.Array(Type.String({ maxLength: bounds.argument }), { maxItems: bounds.arguments })

const Command = Type.String({ minLength: 1, maxLength: bounds.path })

const Headers = Type.Record(
  Type.String({ pattern: `^[^\\0]{1,${bounds.variableName}}$` }),
  Type.String({ maxLength: bounds.header }),
  { additionalProperties: false, maxProperties: bounds.headers, errorMessage: 'must have names of headers' },
)

const Rules = Type.Array(Type.String({ maxLength: bounds.networkRule }), { maxItems: bounds.networkRules })

const Limits = exact({
  memoryMb: Type.Optional(Type.Integer({ minimum: 0 })),
  processes: Type.Optional(Type.Integer({ minimum: 0 })),
  cpus: Type.Optional(Type.Number({ minimum: 0 })),
  diskMb: Type.Optional(Type.Integer({ minimum: 0 })),
})

/** The weakest isolation that the agent's sandboxes may have. */
export const IsolationClass = Type.Union(isolations.map(each => Type.Literal(each)))

const Dollars = Type.Optional(Type.Number({ minimum: 0 }))

const McpServer = Type.Union([
  exact({
    type: Type.Union([Type.Literal('http'), Type.Literal('sse')]),
    url: Type.String({ pattern: '^https?://', errorMessage: 'must be a URL of http or https', maxLength: bounds.url }),
    headers: Type.Optional(Headers),
  }),
  exact({
    type: Type.Literal('stdio'),
    command: Command,
    args: Type.Optional(Arguments),
    env: Type.Optional(Settings),
  }),
])

const Acp = exact({
  preset: Type.Optional(Word),
  command: Type.Optional(Command),
  args: Type.Optional(Arguments),
  env: Type.Optional(Settings),
  mode: Type.Optional(Word),
  config: Type.Optional(
    Type.Record(
      Type.String({ pattern: `^[^\\0]{1,${bounds.variableName}}$` }),
      Type.Union([Type.String({ maxLength: bounds.argument }), Type.Boolean()]),
      { additionalProperties: false, maxProperties: bounds.variables },
    ),
  ),
})

/** How long something may wait. */
const Wait = Type.Optional(Type.Integer({ minimum: 1000, maximum: bounds.waitMs }))

const Options = exact({
  maxTurns: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  maxBudgetUsd: Dollars,
  maxSandboxBudgetUsd: Dollars,
  maxAgentBudgetUsd: Dollars,
  permissionMode: Type.Optional(Type.String({ maxLength: bounds.word })),
  disallowedTools: Type.Optional(Type.Array(Type.String({ maxLength: bounds.tool }), { maxItems: bounds.tools })),
  mcpServers: Type.Optional(
    Type.Record(Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }), McpServer, {
      additionalProperties: false,
      maxProperties: bounds.mcpServers,
      errorMessage: 'a name must have 1 to 64 letters, digits, hyphens and underscores',
    }),
  ),
  acp: Type.Optional(Acp),
  networkAllowOut: Type.Optional(Rules),
  networkDenyOut: Type.Optional(Rules),
  allow: Type.Optional(RuleList),
  ask: Type.Optional(RuleList),
  deny: Type.Optional(RuleList),
  approvals: Type.Optional(Type.Union([Type.Literal('on'), Type.Literal('off')])),
  approvalTimeoutMs: Wait,
  clientToolTimeoutMs: Wait,
  onBudget: Type.Optional(Type.Union([Type.Literal('ask'), Type.Literal('fail')])),
  stream: Type.Optional(StreamProfile),
  clientTools: Type.Optional(ClientTools),
})

const AgentFile = exact({
  slug: Slug,
  name: Type.Optional(Name),
  engine: Type.Optional(Word),
  model: Type.Optional(Type.String({ minLength: 1, maxLength: bounds.model })),
  systemPrompt: Type.Optional(Type.String({ maxLength: bounds.systemPrompt })),
  options: Type.Optional(Options),
  secrets: Type.Optional(Bindings),
  sandbox: Type.Optional(
    exact({
      files: Type.Optional(
        Type.Record(Path, Type.String({ maxLength: bounds.bodyBytes }), {
          additionalProperties: false,
          maxProperties: bounds.files,
          errorMessage: 'must be an absolute path',
        }),
      ),
      envs: Type.Optional(Variables),
      setup: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: bounds.setupCommand }), { maxItems: bounds.setupCommands }),
      ),
      cwd: Type.Optional(Path),
      base: Type.Optional(Command),
      image: Type.Optional(Name),
      runtime: Type.Optional(Name),
      template: Type.Optional(Name),
      limits: Type.Optional(Limits),
      isolation: Type.Optional(IsolationClass),
      timeoutMs: Type.Optional(Type.Integer({ minimum: 1000, maximum: Number.MAX_SAFE_INTEGER })),
    }),
  ),
})

/**
 * The agents of a JSON file, or of every .json file of a directory, each with one of these engines. Throws one error with
 * all that is wrong with them.
 */
export async function readAgentFiles(path: string, engines: readonly string[]): Promise<AgentInput[]> {
  const isDirectory = (await stat(path)).isDirectory()
  const names = isDirectory ? (await readdir(path)).filter(name => name.endsWith('.json')).sort() : []
  const files = isDirectory ? names.map(name => join(path, name)) : [path]
  const problems: string[] = []
  const agents: AgentInput[] = []
  for (const file of files) {
    try {
      const value = readJson(await readFile(file, 'utf8'))
      const faults = findAllFaults(value, engines)
      problems.push(...faults.map(fault => `${file}: ${lineOf(fault)}`))
      if (faults.length === 0) agents.push(readAgent(value))
    } catch (error) {
      problems.push(wordsOf(error).startsWith(`${file}: `) ? wordsOf(error) : `${file}: ${messageOf(error)}`)
    }
  }
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return agents
}

/** How many faults of one file are listed. */
const MOST_FAULTS = 20

/** A field that is wrong, and what it must be. */
type Fault = readonly [field: string, what: string]

const lineOf = ([field, what]: Fault): string => `${field}: ${what}`

const findAllFaults = (value: unknown, engines: readonly string[]): Fault[] => [
  ...findFaults(value),
  ...findEngineFaults(value, engines),
  ...findLimitFaults(value),
]

/** Lists all fields that are wrong. */
function findFaults(value: unknown): Fault[] {
  const faults = new Map<string, string>()
  for (const issue of Value.Errors(AgentFile, value)) {
    const { field, what } = faultOf(issue)
    const name = field || 'agent'
    // The first fault of a field is the most exact one.
    if (!faults.has(name)) faults.set(name, what)
    if (faults.size === MOST_FAULTS) break
  }
  return [...faults]
}

function findEngineFaults(value: unknown, engines: readonly string[]): Fault[] {
  const engine = objectOf(value)?.engine
  if (typeof engine !== 'string' || engines.includes(engine)) return []
  const what = `there is no engine ${excerpt(engine)}${didYouMean(engine, engines)}; there are ${engines.join(', ')}`
  return [['engine', what]]
}

function findLimitFaults(value: unknown): Fault[] {
  const limits = objectOf(objectOf(objectOf(value)?.sandbox)?.limits) ?? {}
  const numbers = Object.entries(limits).filter(([, limit]) => typeof limit === 'number' && limit > 0)
  return faultsOfLimits(Object.fromEntries(numbers)).map(([name, what]) => [`sandbox.limits.${name}`, what] as const)
}

/** Reads an agent from a request. Throws invalid_request that lists every wrong field in `faults`. */
export function readSentAgent(value: unknown, engines: readonly string[]): AgentInput {
  const faults = findAllFaults(value, engines)
  const [first] = faults
  if (!first) return readAgent(value)
  const details = {
    field: first[0],
    faults: faults.map(([field, what]) => ({ field, message: lineOf([field, what]) })),
  }
  throw new ApiError('invalid_request', faults.map(lineOf).join('\n'), details)
}

/** Throws with every field that is wrong. */
export function readAgent(value: unknown): AgentInput {
  if (!Value.Check(AgentFile, value)) throw new Error(findFaults(value).map(lineOf).join('\n'))
  const { slug, name = slug, engine = 'echo', model, systemPrompt, sandbox = {}, options = {}, secrets = [] } = value
  assertRules('options.networkAllowOut', options.networkAllowOut ?? [])
  assertRules('options.networkDenyOut', options.networkDenyOut ?? [])
  for (const name of ['allow', 'ask', 'deny'] as const) assertRuleList(`options.${name}`, options[name])
  assertClientTools('options.clientTools', options.clientTools)
  return {
    slug,
    name,
    engine,
    ...(model !== undefined && { model }),
    ...(systemPrompt !== undefined && { systemPrompt }),
    sandbox: toSandbox(sandbox),
    options: options as AgentOptions,
    ...(secrets.length > 0 && { secrets: readBindings('secrets', secrets) }),
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
  ...(rest as Pick<AgentSandbox, 'cwd' | 'base' | 'image' | 'runtime' | 'template' | 'isolation' | 'timeoutMs'>),
})
