import { type Config, ConfigError, type ModelConfig } from '../core/config.ts'
import type { Rule } from '../egress/rules.ts'
import { wordsOf } from '../errors.ts'
import type { PriceTable } from '../gateway/settings.ts'
import { parseArguments } from '../read/arguments.ts'
import { didYouMean } from '../read/closest.ts'
import { isObject } from '../read/json.ts'
import { readJson } from '../read/json-text.ts'
import { settings } from './settings.ts'

/** Reads the settings: flags win over environment variables, these over the file. Throws a ConfigError with every problem at once. */
export async function readConfig(flags: readonly string[], environment: NodeJS.ProcessEnv): Promise<Config> {
  const problems: string[] = []
  const values = new Map<string, unknown>(defaults())
  const set = (source: string, name: string, value: string) => {
    const setting = settings.find(each => each.name === name)
    if (!setting) return problems.push(`${source}: no such setting${didYouMean(name, names)}`)
    try {
      values.set(name, setting.parse(value))
    } catch (error) {
      // Not with the value: it may be a secret.
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
  return toConfig(values)
}

const names = settings.map(({ name }) => name)

const defaults = (): [string, unknown][] =>
  settings.flatMap(({ name, default: text, parse }) => (text === undefined ? [] : [[name, parse(text)]]))

function toConfig(values: ReadonlyMap<string, unknown>): Config {
  // For settings that have a default.
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
    models: toModelConfig(values),
    ...(agentsDirectory && { agentsDirectory }),
    ...(nsjailPath && { nsjailPath }),
    ...(publicUrl && { publicUrl }),
    ...(key && { apiKey: key }),
    ...(allowed && { origins: allowed }),
    ...(reserveMb !== undefined && { reserveMb }),
  }
}

function toModelConfig(values: ReadonlyMap<string, unknown>): ModelConfig {
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

/** The settings among these flags, unparsed. When one is given twice, the last wins; values of a repeatable one are joined. */
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

/** Writes a value of the file in the form of a flag's value. */
function settingText(value: unknown): string {
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
