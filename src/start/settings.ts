import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { parseRule } from '../egress/rules.ts'
import { faultsOfLimits } from '../environment/least-limits.ts'
import { parseBaseUrl, parsePrices, parseProviders } from '../gateway/settings.ts'
import type { Limits } from '../plugin-api/index.ts'
import type { Flag } from '../read/arguments.ts'

export interface Setting extends Flag {
  value: string
  /** Returns the checked value. Throws an error that says what it must be. */
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

/** Parses a limit of each sandbox; 0: no limit. */
const limit = (name: keyof Limits, most?: number, whole?: boolean) => (value: string) => {
  const given = number(0, most, whole)(value)
  const [fault] = faultsOfLimits({ [name]: given })
  if (fault) throw new Error(`${fault[1]}, or 0 for no limit`)
  return given
}

const path = (value: string) => resolve(text(value))

const paths = (value: string) => value.split(',').map(each => path(each.trim()))

const publicUrl = (value: string) => parseBaseUrl(value).replace(/\/$/, '')

const runtimes = (value: string) =>
  Object.fromEntries(
    value.split(',').map(each => {
      const [, runtime, engine] = /^\s*([\w-]+)=([\w-]+)\s*$/.exec(each) ?? []
      if (!runtime || !engine) throw new Error('must be NAME=ENGINE, as claude-code=ai-sdk')
      return [runtime, engine]
    }),
  )

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

const logLevel = (value: string) => {
  if (!['error', 'info', 'debug'].includes(value)) throw new Error('must be error, info or debug')
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
  {
    name: 'backend',
    value: 'NAME',
    default: 'nsjail',
    help: 'where new sandboxes go: nsjail, docker, e2b or a plugin',
    parse: text,
  },
  { name: 'host', value: 'ADDRESS', default: '127.0.0.1', help: 'address to listen on', parse: text },
  { name: 'port', value: 'N', default: '7070', help: 'port to listen on, 0 for any', parse: number(0, 65535) },
  { name: 'data-dir', value: 'DIR', default: defaultDataDirectory(), help: 'everything persistent', parse: path },
  {
    name: 'reserve-mb',
    value: 'N',
    help: 'MB kept free on its disk, 0: none (512, or a twentieth of a smaller disk)',
    parse: number(0),
  },
  { name: 'agents', value: 'DIR', help: 'agent files to apply at start', parse: path },
  { name: 'nsjail-path', value: 'FILE', help: 'the nsjail executable (embedded, else from PATH)', parse: path },
  {
    name: 'docker-image',
    value: 'IMAGE',
    default: 'debian:12-slim',
    help: 'for agents on docker that name no image',
    parse: text,
  },
  {
    name: 'e2b-template',
    value: 'NAME',
    default: 'base',
    help: 'for agents on e2b that name no template',
    parse: text,
  },
  { name: 'public-url', value: 'URL', help: 'where this server is reached from outside', parse: publicUrl },
  {
    name: 'plugin',
    value: 'FILES',
    help: 'TypeScript files of more backends and engines, by comma',
    parse: paths,
    repeats: true,
  },
  { name: 'api-key', value: 'KEY', help: 'one more key to accept; better given as THREADBOX_API_KEY', parse: apiKey },
  { name: 'origins', value: 'LIST', help: 'browser origins that may call, by comma (all)', parse: origins },
  {
    name: 'memory-mb',
    value: 'N',
    default: '2048',
    help: 'memory of a sandbox, 0: no limit',
    parse: limit('memoryMb'),
  },
  {
    name: 'processes',
    value: 'N',
    default: '512',
    help: 'processes of a sandbox, 0: no limit',
    parse: limit('processes'),
  },
  {
    name: 'cpus',
    value: 'N',
    default: '2',
    help: 'CPU cores of a sandbox, 0: no limit',
    parse: limit('cpus', 1024, false),
  },
  { name: 'disk-mb', value: 'N', default: '10240', help: 'disk of a sandbox, 0: no limit', parse: number(0) },
  {
    name: 'network',
    value: 'public|none',
    default: 'public',
    help: 'what sandboxes reach without rules',
    parse: network,
  },
  {
    name: 'network-private',
    value: 'LIST',
    help: 'private CIDRs, with :PORT or without, that rules may allow (none)',
    parse: ranges,
  },
  {
    name: 'grace-ms',
    value: 'N',
    default: '3000',
    help: 'how long runs may go on after SIGTERM',
    parse: number(0, 3_600_000),
  },
  {
    name: 'idle-ms',
    value: 'N',
    default: '3600000',
    help: 'stop a sandbox not used for so long, 0: never',
    parse: number(0),
  },
  {
    name: 'watchdog-ms',
    value: 'N',
    default: '30000',
    help: 'end the server when it stands still for so long, 0: never',
    parse: number(0, 3_600_000),
  },
  {
    name: 'requests-per-key',
    value: 'N',
    default: '512',
    help: 'open at once, streams and WebSockets too, 0: no limit',
    parse: number(0),
  },
  {
    name: 'log-level',
    value: 'LEVEL',
    default: 'info',
    help: 'what is logged: error, info, or debug, which adds a line a request',
    parse: logLevel,
  },
  {
    name: 'runtime',
    value: 'NAME=ENGINE',
    help: 'the engine of deployed agents that name this runtime; by comma or again',
    parse: runtimes,
    repeats: true,
  },
  { name: 'model', value: 'P/M', help: 'provider/model for agents that name no model', parse: model },
  { name: 'model-url', value: 'URL', help: "base URL of that model's provider", parse: parseBaseUrl },
  { name: 'model-key', value: 'KEY', help: 'its key; better given as THREADBOX_MODEL_KEY', parse: text },
  { name: 'model-window', value: 'N', help: 'context window of the model in tokens (as known)', parse: number(1) },
  {
    name: 'providers',
    value: 'JSON',
    help: 'more providers: {"NAME":{"wire","baseUrl","keyEnv"}}',
    parse: parseProviders,
  },
  { name: 'prices', value: 'JSON', help: 'USD per million tokens: {"MODEL":{"input","output"}}', parse: parsePrices },
  {
    name: 'thread-budget-usd',
    value: 'N',
    default: '0',
    help: 'budget of one thread, 0: no limit',
    parse: number(0, 1e9, false),
  },
  {
    name: 'key-day-budget-usd',
    value: 'N',
    default: '0',
    help: 'budget of one API key for a day, 0: no limit',
    parse: number(0, 1e9, false),
  },
  {
    name: 'day-budget-usd',
    value: 'N',
    default: '0',
    help: 'budget of the server for a day, 0: no limit',
    parse: number(0, 1e9, false),
  },
]

function apiKey(value: string): string {
  if (value.length < 16 || /\s/.test(value)) throw new Error('must be 16 or more characters without spaces')
  return value
}

export function defaultDataDirectory(): string {
  if (process.getuid?.() === 0) return '/var/lib/threadbox'
  const { XDG_DATA_HOME } = process.env
  const home = XDG_DATA_HOME && isAbsolute(XDG_DATA_HOME) ? XDG_DATA_HOME : join(homedir(), '.local/share')
  return join(home, 'threadbox')
}
