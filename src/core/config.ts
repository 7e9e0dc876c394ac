import type { Rule } from '../egress/rules.ts'
import type { OperatorBudgets } from '../gateway/budgets.ts'
import type { PriceTable, ProviderSetting } from '../gateway/settings.ts'
import type { LimitName, LimitValue } from '../model/limit.ts'
import type { Limits } from '../plugin-api/index.ts'
import type { Range } from '../read/addresses.ts'

/** What a server runs with. Checked once, at start. */
export interface Config {
  /** The backend that new sandboxes go to, unless more isolation is asked for. */
  backend: string
  /** All that new sandboxes may go to, the default first. */
  backends: readonly string[]
  host: string
  /** 0: any free port. */
  port: number
  /** Absent: without TLS. */
  tls?: TlsFiles
  dataDirectory: string
  /** `full`: nothing that was committed is shown before it is on the disk. */
  durability: 'normal' | 'full'
  /** `external`: another program puts the database's log into the database. */
  walCheckpoint: 'own' | 'external'
  /** Kept free on the file system of the data directory. 0: nothing. Absent: an amount that depends on its size. */
  reserveMb?: number
  agentsDirectory?: string
  nsjailPath?: string
  /** Sandboxes on docker start from it unless their agent names an image. */
  dockerImage: string
  /** Runtimes of its engine that agents may name; the first is for those that name none. Empty: the engine's own. */
  dockerRuntimes: readonly string[]
  /** Sandboxes on e2b start from it unless their agent names a template. */
  e2bTemplate: string
  /** Where environments on other machines reach this server; no trailing slash. */
  publicUrl?: string
  /** Ports of sandboxes are at `PORT-ID.` and this name, with a port where it is not that of the scheme. */
  previewDomain?: string
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
  /** Addresses that are not public and that webhooks may go to. */
  webhookPrivate: Rule[]
  /** Proxies in front of this server, whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly Range[]
  /** How long active runs may go on after SIGTERM. */
  graceMs: number
  /** How long the event loop may stand still before the server ends itself; 0: for ever. */
  watchdogMs: number
  /** A sandbox's processes stop after this long without use; 0: never. */
  idleMs: number
  /** Sandboxes that stand ready for the next creates. */
  spares: number
  /** Requests, streams and WebSockets of one key that are open at once; 0: no limit. */
  requestsPerKey: number
  /** Where figures are read without a key; absent: nowhere. */
  metricsAddress?: { host: string; port: number }
  /** The form of the log: lines for people, or an object of JSON in each. */
  log: 'text' | 'json'
  /** Limits on callers. */
  callerLimits: Readonly<Record<LimitName, LimitValue>>
  /** How long the audit log is kept; 0: for ever. */
  auditDays: number
  /** Where a copy of it goes, absolute. */
  auditFile?: string
  /** The audit log has commands themselves. */
  auditCommands: boolean
  /** The weakest lines that are logged. */
  logLevel: LogLevel
  /** Backups that the server makes by itself. Absent: none. */
  backups?: ScheduledBackups
  /** Engines by the runtime that deployed agents name. */
  runtimes: Readonly<Record<string, string>>
  models: ModelConfig
  /** Every setting as text, for people: secrets are hidden. */
  shown: readonly ShownSetting[]
}

export interface ScheduledBackups {
  everyMs: number
  /** A directory, or `s3://…`. */
  to: string
  /** How many stay, and those that are younger than so many days. */
  keep?: number
  keepDays?: number
  /** They are encrypted for these public keys, or by the passphrase in this file. */
  recipients?: string[]
  passphraseFile?: string
}

/** Files in PEM, absolute. */
export interface TlsFiles {
  /** The certificate, and those between it and its root. */
  certFile: string
  keyFile: string
}

export interface ShownSetting {
  name: string
  help: string
  /** Absent: not set. Of a secret, dots. */
  value?: string
  source: 'default' | 'file' | 'environment' | 'flag'
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
