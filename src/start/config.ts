import type { LogLevel } from '../core/runtime.ts'
import type { Rule } from '../egress/rules.ts'
import { wordsOf } from '../errors.ts'
import type { OperatorBudgets } from '../gateway/budgets.ts'
import type { PriceTable, ProviderSetting } from '../gateway/settings.ts'
import type { Limits } from '../plugin-api/index.ts'
import { parseArguments } from '../read/arguments.ts'
import { didYouMean } from '../read/closest.ts'
import { isObject } from '../read/json.ts'
import { readJson } from '../read/json-text.ts'
import { settings } from './settings.ts'

/** What `serve` runs with. Checked once, at start. */
export interface Config {
  /** The backend that new sandboxes go to. */
  backend: string
  host: string
  /** 0: any free port. */
  port: number
  dataDirectory: string
  /** What is to stay free on its file system; without it, by its size. 0: nothing. */
  reserveMb?: number
  agentsDirectory?: string
  nsjailPath?: string
  /** What docker's sandboxes start from unless their agent names an image. */
  dockerImage: string
  /** What e2b's sandboxes start from unless their agent names a template. */
  e2bTemplate: string
  /** Where environments on other machines reach this server; no trailing slash. */
  publicUrl?: string
  /** Files of plugins, absolute. */
  plugins: string[]
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
  /** How long the event loop may stand still before the server ends itself; 0: for ever. */
  watchdogMs: number
  /** A sandbox's processes stop after this long without use; 0: never. */
  idleMs: number
  /** Requests, streams and WebSockets of one key that are open at once; 0: no limit. */
  requestsPerKey: number
  /** The weakest lines that are logged. */
  logLevel: LogLevel
  /** Engines by the runtime that deployed agents name. */
  runtimes: Readonly<Record<string, string>>
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
  const values = new Map<string, unknown>(defaults())
  const set = (source: string, name: string, value: string) => {
    const setting = settings.find(each => each.name === name)
    if (!setting) return problems.push(`${source}: no such setting${didYouMean(name, names)}`)
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

const names = settings.map(({ name }) => name)

const defaults = (): [string, unknown][] =>
  settings.flatMap(({ name, default: text, parse }) => (text === undefined ? [] : [[name, parse(text)]]))

function configOf(values: ReadonlyMap<string, unknown>): Config {
  // Those with a default.
  const get = <Value>(name: string) => values.get(name) as Value
  const find = <Value>(name: string) => values.get(name) as Value | undefined
  const agentsDirectory = find<string>('agents')
  const nsjailPath = find<string>('nsjail-path')
  const publicUrl = find<string>('public-url')
  const key = find<string>('api-key')
  const allowed = find<string[]>('origins')
  const reserveMb = find<number>('reserve-mb')
  return {
    backend: get('backend'),
    host: get('host'),
    port: get('port'),
    dataDirectory: get('data-dir'),
    limits: {
      memoryMb: get('memory-mb'),
      processes: get('processes'),
      cpus: get('cpus'),
      diskMb: get('disk-mb'),
    },
    network: get('network'),
    networkPrivate: find<Rule[]>('network-private') ?? [],
    graceMs: get('grace-ms'),
    watchdogMs: get('watchdog-ms'),
    idleMs: get('idle-ms'),
    requestsPerKey: get('requests-per-key'),
    dockerImage: get('docker-image'),
    e2bTemplate: get('e2b-template'),
    plugins: find<string[]>('plugin') ?? [],
    logLevel: get('log-level'),
    runtimes: find<Config['runtimes']>('runtime') ?? {},
    models: modelsOf(values),
    ...(agentsDirectory && { agentsDirectory }),
    ...(nsjailPath && { nsjailPath }),
    ...(publicUrl && { publicUrl }),
    ...(key && { apiKey: key }),
    ...(allowed && { origins: allowed }),
    ...(reserveMb !== undefined && { reserveMb }),
  }
}

function modelsOf(values: ReadonlyMap<string, unknown>): ModelConfig {
  const names = { model: 'model', modelUrl: 'model-url', modelKey: 'model-key', modelWindow: 'model-window' }
  const given = Object.entries(names).filter(([, name]) => values.has(name))
  const number = (name: string) => values.get(name) as number
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

/** The settings among these flags, as they were given. Of one given twice the last, unless it is a list that repeats. */
export function readFlags(flags: readonly string[], problems: string[]): Map<string, string> {
  const given = parseArguments(flags, settings)
  problems.push(...given.problems, ...given.words.map(word => `${word}: not a flag`))
  const repeating = settings.filter(({ repeats }) => repeats).map(({ name }) => name)
  return new Map(
    [...given.flags].map(([name, values]) => [
      name,
      repeating.includes(name) ? values.join(',') : (values.at(-1) ?? ''),
    ]),
  )
}

async function readFile(file: string | undefined, problems: string[]): Promise<[string, string][]> {
  if (!file) return []
  try {
    const value = readJson(await Bun.file(file).text())
    if (!isObject(value)) throw new Error('must be an object: {"port": 8080}')
    return Object.entries(value).map(([name, each]) => [name, settingText(each)])
  } catch (error) {
    const words = wordsOf(error)
    problems.push(`config: ${words.startsWith(`${file}: `) ? words : `${file}: ${words}`}`)
    return []
  }
}

/** A file's value as a flag would have it. */
function settingText(value: unknown): string {
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
