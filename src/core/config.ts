import type { Rule } from '../egress/rules.ts'
import type { OperatorBudgets } from '../gateway/budgets.ts'
import type { PriceTable, ProviderSetting } from '../gateway/settings.ts'
import type { LimitName, LimitValue } from '../model/limit.ts'
import type { Limits } from '../plugin-api/index.ts'
import type { Range } from '../read/addresses.ts'

/** What a server runs with. Checked once, at start. */
export interface Config {
  /** The backend of new sandboxes, unless they need stronger isolation. */
  backend: string
  /** All backends that new sandboxes may use, the default first. */
  backends: readonly string[]
  host: string
  /** 0: any free port. */
  port: number
  /** Absent when the server speaks plain HTTP. */
  tls?: TlsFiles
  dataDirectory: string
  /** With `full`, nothing that was committed is shown before it is on the disk. */
  durability: 'normal' | 'full'
  /** With `external`, another program moves the write-ahead log into the database. */
  walCheckpoint: 'own' | 'external'
  /** Kept free on the file system of the data directory. 0: nothing. Absent: an amount that depends on its size. */
  reserveMb?: number
  agentsDirectory?: string
  nsjailPath?: string
  /** Sandboxes on docker start from it unless their agent names an image. */
  dockerImage: string
  /**
   * The runtimes of Docker's engine that agents may name; an agent that names none gets the first. Empty means the engine's own
   * default.
   */
  dockerRuntimes: readonly string[]
  /** Sandboxes on e2b start from it unless their agent names a template. */
  e2bTemplate: string
  /** Where environments on other machines reach this server; no trailing slash. */
  publicUrl?: string
  /** Ports of sandboxes are reached at `PORT-ID.` before this name, which includes a port unless it is the scheme's default. */
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
  /** Addresses that are not public and that webhooks may be sent to. */
  webhookPrivate: Rule[]
  /** Proxies in front of this server, whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly Range[]
  /** How long active runs may go on after SIGTERM. */
  graceMs: number
  /** How long the event loop may stand still before the server ends itself; 0: for ever. */
  watchdogMs: number
  /** A sandbox's processes stop after this long without use; 0: never. */
  idleMs: number
  /** How many environments are kept ready for the next creates. */
  spares: number
  /** Requests, streams and WebSockets of one key that are open at once; 0: no limit. */
  requestsPerKey: number
  /** The address that shows figures without a key. It is absent when the operator named none. */
  metricsAddress?: { host: string; port: number }
  /** The form of the log: lines for people, or one JSON object a line. */
  log: 'text' | 'json'
  /** Limits on callers. */
  callerLimits: Readonly<Record<LimitName, LimitValue>>
  /** How many days the audit log is kept; 0 means for ever. */
  auditDays: number
  /** The absolute path of the audit log's copy. */
  auditFile?: string
  /** Whether the audit log has the text of commands. */
  auditCommands: boolean
  /** The weakest lines that are logged. */
  logLevel: LogLevel
  /** The backups that the server makes by itself; absent when it makes none. */
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
  /** How many backups are kept, besides those that are younger than a number of days. */
  keep?: number
  keepDays?: number
  /** Backups are encrypted for these public keys, or with the passphrase in this file. */
  recipients?: string[]
  passphraseFile?: string
}

/** Files in PEM, by absolute paths. */
export interface TlsFiles {
  /** The certificate, followed by those between it and its root. */
  certFile: string
  keyFile: string
}

export interface ShownSetting {
  name: string
  help: string
  /** Absent when the setting is not set. For a secret, this is dots. */
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
