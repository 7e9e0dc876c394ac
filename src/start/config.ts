import { type Config, ConfigError, type ModelConfig, type ScheduledBackups, type ShownSetting } from '../core/config.ts'
import { defaultLimits } from '../core/limits/parse.ts'
import type { Rule } from '../egress/rules.ts'
import { wordsOf } from '../errors.ts'
import type { PriceTable } from '../gateway/settings.ts'
import type { OwnLimits } from '../model/limit.ts'
import type { Range } from '../read/addresses.ts'
import { parseArguments } from '../read/arguments.ts'
import { didYouMean } from '../read/closest.ts'
import { isObject } from '../read/json.ts'
import { readJson } from '../read/json-text.ts'
import { settings } from './settings.ts'

/** Reads the settings: flags win over environment variables, these over the file. Throws a ConfigError with every problem at once. */
export async function readConfig(flags: readonly string[], environment: NodeJS.ProcessEnv): Promise<Config> {
  const problems: string[] = []
  const values = new Map<string, unknown>(defaults())
  const shown = new Map<string, Pick<ShownSetting, 'value' | 'source'>>()
  const set = (from: ShownSetting['source'], source: string, name: string, value: string) => {
    const setting = settings.find(each => each.name === name)
    if (!setting) return problems.push(`${source}: no such setting${didYouMean(name, names)}`)
    try {
      values.set(name, setting.parse(value))
      shown.set(name, { value: setting.isSecret ? HIDDEN : value, source: from })
    } catch (error) {
      // Not with the value: it may be a secret.
      problems.push(`${source}: ${(error as Error).message}`)
    }
    return undefined
  }

  const given = readFlags(flags, problems)
  const variable = (name: string) => `THREADBOX_${name.toUpperCase().replaceAll('-', '_')}`
  const file = given.get('config') ?? environment[variable('config')]
  for (const [name, value] of await readFile(file, problems)) set('file', `"${name}" in ${file}`, name, value)
  for (const { name } of settings) {
    const value = environment[variable(name)]
    if (value !== undefined) set('environment', variable(name), name, value)
  }
  for (const [name, value] of given) set('flag', `--${name}`, name, value)
  if (values.has('model-url') && !values.has('model')) problems.push('--model-url: wants --model provider/model')
  if (values.has('backup-every') !== values.has('backup-to'))
    problems.push('--backup-every, --backup-to: each wants the other')
  if (values.has('tls-cert') !== values.has('tls-key')) problems.push('--tls-cert, --tls-key: one wants the other')
  if (problems.length > 0) throw new ConfigError(problems)
  const [first] = (values.get('backends') as string[] | undefined) ?? []
  if (first !== undefined && !shown.has('backend')) values.set('backend', first)
  return { ...toConfig(values), shown: show(shown) }
}

const HIDDEN = '••••'

const show = (given: ReadonlyMap<string, Pick<ShownSetting, 'value' | 'source'>>): ShownSetting[] =>
  settings.map(({ name, help, default: value }) => ({
    name,
    help,
    ...(given.get(name) ?? { ...(value !== undefined && { value }), source: 'default' }),
  }))

const names = settings.map(({ name }) => name)

const defaults = (): [string, unknown][] =>
  settings.flatMap(({ name, default: text, parse }) => (text === undefined ? [] : [[name, parse(text)]]))

function toConfig(values: ReadonlyMap<string, unknown>): Omit<Config, 'shown'> {
  // For settings that have a default.
  const get = <Value>(name: string) => values.get(name) as Value
  const find = <Value>(name: string) => values.get(name) as Value | undefined
  const agentsDirectory = find<string>('agents')
  const nsjailPath = find<string>('nsjail-path')
  const publicUrl = find<string>('public-url')
  const previewDomain = find<string>('preview-domain')
  const certFile = find<string>('tls-cert')
  const keyFile = find<string>('tls-key')
  const key = find<string>('api-key')
  const allowed = find<string[]>('origins')
  const metricsAddress = find<NonNullable<Config['metricsAddress']>>('metrics-address')
  const auditFile = find<string>('audit-file')
  const reserveMb = find<number>('reserve-mb')
  const backups = toBackups(values)
  const backend = get<string>('backend')
  const listed = find<string[]>('backends') ?? []
  return {
    backend,
    backends: [backend, ...listed.filter(name => name !== backend)],
    host: get('host'),
    port: get('port'),
    dataDirectory: get('data-dir'),
    durability: get('durability'),
    walCheckpoint: get('wal-checkpoint'),
    limits: {
      memoryMb: get('memory-mb'),
      processes: get('processes'),
      cpus: get('cpus'),
      diskMb: get('disk-mb'),
    },
    network: get('network'),
    networkPrivate: find<Rule[]>('network-private') ?? [],
    webhookPrivate: find<Rule[]>('webhook-private') ?? [],
    trustedProxies: find<Range[]>('trusted-proxies') ?? [],
    graceMs: get('grace-ms'),
    watchdogMs: get('watchdog-ms'),
    idleMs: get('idle-ms'),
    spares: get('spares'),
    callerLimits: { ...defaultLimits(), ...find<OwnLimits>('limit') },
    requestsPerKey: get('requests-per-key'),
    dockerImage: get('docker-image'),
    dockerRuntimes: find<string[]>('docker-runtime') ?? [],
    e2bTemplate: get('e2b-template'),
    plugins: find<string[]>('plugin') ?? [],
    log: get('log'),
    logLevel: get('log-level'),
    auditDays: get('audit-days'),
    auditCommands: get('audit-commands') === 'yes',
    runtimes: find<Config['runtimes']>('runtime') ?? {},
    models: toModelConfig(values),
    ...(auditFile && { auditFile }),
    ...(certFile && keyFile && { tls: { certFile, keyFile } }),
    ...(agentsDirectory && { agentsDirectory }),
    ...(nsjailPath && { nsjailPath }),
    ...(publicUrl && { publicUrl }),
    ...(previewDomain && { previewDomain }),
    ...(key && { apiKey: key }),
    ...(allowed && { origins: allowed }),
    ...(metricsAddress && { metricsAddress }),
    ...(reserveMb !== undefined && { reserveMb }),
    ...(backups && { backups }),
  }
}

function toBackups(values: ReadonlyMap<string, unknown>): ScheduledBackups | undefined {
  const find = <Value>(name: string) => values.get(`backup-${name}`) as Value | undefined
  const everyMs = find<number>('every')
  const [to, keep, keepDays] = [find<string>('to'), find<number>('keep'), find<number>('keep-days')]
  const [recipients, passphraseFile] = [find<string[]>('recipient'), find<string>('passphrase-file')]
  if (everyMs === undefined || to === undefined) return undefined
  return {
    ...{ everyMs, to },
    ...(keep !== undefined && { keep }),
    ...(keepDays !== undefined && { keepDays }),
    ...(recipients && { recipients }),
    ...(passphraseFile !== undefined && { passphraseFile }),
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
