import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { parseRule, type Rule } from './egress/rules.ts'
import type { OperatorBudgets } from './gateway/budgets.ts'
import { type PriceTable, type ProviderSetting, parseBaseUrl, parsePrices, parseProviders } from './gateway/settings.ts'
import { isObject } from './json.ts'
import type { Limits } from './plugin.ts'

/** What `serve` runs with. Checked once, at start. */
export interface Config {
  /** The backend that new sandboxes go to. */
  backend: string
  host: string
  /** 0: any free port. */
  port: number
  dataDirectory: string
  agentsDirectory?: string
  nsjailPath?: string
  /** A key that is accepted beside those of the database. */
  apiKey?: string
  /** Browser origins that may call; undefined: all. */
  origins?: string[]
  limits: Limits
  /** What sandboxes may reach unless their rules narrow it. */
  network: 'public' | 'none'
  /** Addresses that are not public and that rules may name. */
  networkPrivate: Rule[]
  /** How long active runs may go on after SIGTERM. */
  graceMs: number
  /** A sandbox's processes stop after this long without use; 0: never. */
  idleMs: number
  models: ModelConfig
}

/** Where model calls go and what they may cost. */
export interface ModelConfig {
  /** `provider/model`, for agents that name none. */
  model?: string
  /** Of the provider that `model` names. */
  modelUrl?: string
  modelKey?: string
  /** Tokens that the window of `model` takes. */
  modelWindow?: number
  prices: PriceTable
  providers: Readonly<Record<string, ProviderSetting>>
  budgets: OperatorBudgets
}

interface Setting {
  name: string
  /** What the value is, for help and errors. */
  value: string
  help: string
  /** Gives the checked value, or throws with what it should be. */
  parse: (text: string) => unknown
}

const text = (value: string) => {
  if (value === '') throw new Error('must not be empty')
  return value
}

const number = (least: number, most = Number.MAX_SAFE_INTEGER, whole = true) => {
  return (value: string) => {
    const given = Number(value)
    const fits = value.trim() !== '' && given >= least && given <= most && (!whole || Number.isSafeInteger(given))
    if (!fits) throw new Error(`must be a ${whole ? 'whole ' : ''}number from ${least} to ${most}`)
    return given
  }
}

const path = (value: string) => resolve(text(value))

const model = (value: string) => {
  if (!/^[a-z0-9][a-z0-9-]*\/\S+$/.test(value)) throw new Error('must be provider/model')
  return value
}

const origins = (value: string) =>
  text(value)
    .split(',')
    .map(each => {
      const origin = each.trim()
      if (URL.parse(origin)?.origin !== origin) throw new Error(`must be origins like https://example.com, not ${each}`)
      return origin
    })

const network = (value: string) => {
  if (value !== 'public' && value !== 'none') throw new Error('must be public or none')
  return value
}

const ranges = (value: string) =>
  text(value)
    .split(',')
    .map(each => {
      const rule = parseRule(each)
      if (!rule.range) throw new Error(`must be addresses and CIDRs, not ${each}`)
      return rule
    })

/** Every setting: `--name`, THREADBOX_NAME and "name" in the file, in this order of strength. */
export const settings: readonly Setting[] = [
  { name: 'config', value: 'FILE', help: 'a JSON file with any of these settings', parse: path },
  { name: 'backend', value: 'NAME', help: 'where new sandboxes go (nsjail)', parse: text },
  { name: 'host', value: 'ADDRESS', help: 'address to listen on (127.0.0.1)', parse: text },
  { name: 'port', value: 'N', help: 'port to listen on, 0 for any (7070)', parse: number(0, 65535) },
  { name: 'data-dir', value: 'DIR', help: `everything persistent (${defaultDataDirectory()})`, parse: path },
  { name: 'agents', value: 'DIR', help: 'agent files to apply at start', parse: path },
  { name: 'nsjail-path', value: 'FILE', help: 'the nsjail executable (embedded, else from PATH)', parse: path },
  { name: 'api-key', value: 'KEY', help: 'one more key to accept; better given as THREADBOX_API_KEY', parse: apiKey },
  { name: 'origins', value: 'LIST', help: 'browser origins that may call, by comma (all)', parse: origins },
  { name: 'memory-mb', value: 'N', help: 'memory of a sandbox, 0: no limit (2048)', parse: number(0) },
  { name: 'processes', value: 'N', help: 'processes of a sandbox, 0: no limit (512)', parse: number(0) },
  { name: 'cpus', value: 'N', help: 'CPU cores of a sandbox, 0: no limit (2)', parse: number(0, 1024, false) },
  { name: 'disk-mb', value: 'N', help: 'disk of a sandbox, 0: no limit (10240)', parse: number(0) },
  { name: 'network', value: 'public|none', help: 'what sandboxes reach without rules (public)', parse: network },
  {
    name: 'network-private',
    value: 'LIST',
    help: 'CIDRs, with :PORT or not, that rules may name though they are private (none)',
    parse: ranges,
  },
  { name: 'grace-ms', value: 'N', help: 'how long runs may go on after SIGTERM (3000)', parse: number(0, 3_600_000) },
  { name: 'idle-ms', value: 'N', help: 'stop a sandbox not used for so long, 0: never (3600000)', parse: number(0) },
  { name: 'model', value: 'P/M', help: 'provider/model of agents that name none', parse: model },
  { name: 'model-url', value: 'URL', help: "base URL of that model's provider", parse: parseBaseUrl },
  { name: 'model-key', value: 'KEY', help: 'its key; better given as THREADBOX_MODEL_KEY', parse: text },
  { name: 'model-window', value: 'N', help: 'tokens that the model takes (as it is known)', parse: number(1) },
  {
    name: 'providers',
    value: 'JSON',
    help: 'more providers: {"NAME":{"wire","baseUrl","keyEnv"}}',
    parse: parseProviders,
  },
  { name: 'prices', value: 'JSON', help: 'USD per million tokens: {"MODEL":{"input","output"}}', parse: parsePrices },
  { name: 'thread-budget-usd', value: 'N', help: 'of one thread, 0: no limit (0)', parse: number(0, 1e9, false) },
  {
    name: 'key-day-budget-usd',
    value: 'N',
    help: 'of one API key a day, 0: no limit (0)',
    parse: number(0, 1e9, false),
  },
  { name: 'day-budget-usd', value: 'N', help: 'of the server a day, 0: no limit (0)', parse: number(0, 1e9, false) },
]

/** All that is wrong with the settings, a line each, each with the name of its setting. */
export class ConfigError extends Error {
  readonly exitCode = 2

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'))
  }
}

/** Flags over environment over file. Throws a ConfigError with every problem at once. */
export async function readConfig(flags: readonly string[], environment: NodeJS.ProcessEnv): Promise<Config> {
  const problems: string[] = []
  const values = new Map<string, unknown>()
  const set = (source: string, name: string, value: string) => {
    const setting = settings.find(each => each.name === name)
    if (!setting) return problems.push(`${source}: no such setting`)
    try {
      values.set(name, setting.parse(value))
    } catch (error) {
      // The value itself may be a secret.
      problems.push(`${source}: ${(error as Error).message}`)
    }
    return undefined
  }

  const given = readFlags(flags, problems)
  const variable = (name: string) => `THREADBOX_${name.toUpperCase().replaceAll('-', '_')}`
  const file = given.get('config') ?? environment[variable('config')]
  for (const [name, value] of await readFile(file, problems)) set(`"${name}" in ${file}`, name, value)
  for (const { name } of settings) {
    const value = environment[variable(name)]
    if (value !== undefined) set(variable(name), name, value)
  }
  for (const [name, value] of given) set(`--${name}`, name, value)
  if (values.has('model-url') && !values.has('model')) problems.push('--model-url: wants --model provider/model')
  if (problems.length > 0) throw new ConfigError(problems)
  return configOf(values)
}

function configOf(values: ReadonlyMap<string, unknown>): Config {
  const get = <Value>(name: string, fallback: Value) => (values.get(name) as Value | undefined) ?? fallback
  const find = <Value>(name: string) => values.get(name) as Value | undefined
  const [agentsDirectory, nsjailPath, key] = [
    find<string>('agents'),
    find<string>('nsjail-path'),
    find<string>('api-key'),
  ]
  const allowed = find<string[]>('origins')
  return {
    backend: get('backend', 'nsjail'),
    host: get('host', '127.0.0.1'),
    port: get('port', 7070),
    dataDirectory: get('data-dir', defaultDataDirectory()),
    limits: {
      memoryMb: get('memory-mb', 2048),
      processes: get('processes', 512),
      cpus: get('cpus', 2),
      diskMb: get('disk-mb', 10_240),
    },
    network: get<Config['network']>('network', 'public'),
    networkPrivate: get<Rule[]>('network-private', []),
    graceMs: get('grace-ms', 3000),
    idleMs: get('idle-ms', 3_600_000),
    models: modelsOf(values),
    ...(agentsDirectory && { agentsDirectory }),
    ...(nsjailPath && { nsjailPath }),
    ...(key && { apiKey: key }),
    ...(allowed && { origins: allowed }),
  }
}

function modelsOf(values: ReadonlyMap<string, unknown>): ModelConfig {
  const names = { model: 'model', modelUrl: 'model-url', modelKey: 'model-key', modelWindow: 'model-window' }
  const given = Object.entries(names).filter(([, name]) => values.has(name))
  const number = (name: string) => (values.get(name) as number | undefined) ?? 0
  return {
    ...Object.fromEntries(given.map(([field, name]) => [field, values.get(name)])),
    prices: (values.get('prices') as PriceTable | undefined) ?? {},
    providers: (values.get('providers') as ModelConfig['providers'] | undefined) ?? {},
    budgets: {
      threadUsd: number('thread-budget-usd'),
      keyDayUsd: number('key-day-budget-usd'),
      dayUsd: number('day-budget-usd'),
    },
  }
}

/** `--name value` and `--name=value`. */
function readFlags(flags: readonly string[], problems: string[]): Map<string, string> {
  const given = new Map<string, string>()
  for (let index = 0; index < flags.length; index++) {
    const flag = flags[index] ?? ''
    const [, name, inline] = /^--([a-z-]+)(?:=(.*))?$/s.exec(flag) ?? []
    if (!name) {
      problems.push(`${flag}: not a flag`)
      continue
    }
    const value = inline ?? flags[++index]
    if (value === undefined) problems.push(`--${name}: wants a value`)
    else given.set(name, value)
  }
  return given
}

async function readFile(file: string | undefined, problems: string[]): Promise<[string, string][]> {
  if (!file) return []
  try {
    const value: unknown = await Bun.file(file).json()
    if (!isObject(value)) throw new Error('not an object')
    return Object.entries(value).map(([name, each]) => [name, settingText(each)])
  } catch (error) {
    problems.push(`config: ${file}: ${(error as Error).message}`)
    return []
  }
}

/** A file's value as a flag would have it. */
function settingText(value: unknown): string {
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function apiKey(value: string): string {
  if (value.length < 16 || /\s/.test(value)) throw new Error('must be 16 or more characters without spaces')
  return value
}

function defaultDataDirectory(): string {
  if (process.getuid?.() === 0) return '/var/lib/threadbox'
  const { XDG_DATA_HOME } = process.env
  const home = XDG_DATA_HOME && isAbsolute(XDG_DATA_HOME) ? XDG_DATA_HOME : join(homedir(), '.local/share')
  return join(home, 'threadbox')
}
