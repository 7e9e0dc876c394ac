import type { Rule } from '../egress/rules.ts'
import type { OperatorBudgets } from '../gateway/budgets.ts'
import type { PriceTable, ProviderSetting } from '../gateway/settings.ts'
import type { Limits } from '../plugin-api/index.ts'

/** What a server runs with. Checked once, at start. */
export interface Config {
  /** The backend that new sandboxes go to. */
  backend: string
  host: string
  /** 0: any free port. */
  port: number
  dataDirectory: string
  /** Kept free on the file system of the data directory. 0: nothing. Absent: an amount that depends on its size. */
  reserveMb?: number
  agentsDirectory?: string
  nsjailPath?: string
  /** Sandboxes on docker start from it unless their agent names an image. */
  dockerImage: string
  /** Sandboxes on e2b start from it unless their agent names a template. */
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

/** The strongest first: failures of the server, events, and each request. */
export type LogLevel = 'error' | 'info' | 'debug'

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
