import type { Database } from 'bun:sqlite'
import type { Egress } from '../egress/egress.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Backend, DiskSpace, Engine } from '../plugin-api/index.ts'
import type { Runs } from '../runs/registry.ts'
import type { Config } from '../start/config.ts'
import type { Bundles } from './agents/bundles.ts'
import type { Environments } from './sandboxes/environments.ts'
import type { Networks } from './sandboxes/networks.ts'

/** What the server knows of its own event loop. */
export interface EventLoop {
  /** Keeps what is begun now, for whoever finds that the loop stands still. Never a secret. */
  entered(what: string): void
  /** How late the loop was in the last minute, in milliseconds. */
  delayMs(): { p50: number; p99: number; max: number }
}

/** The strongest first: what has failed in the server, what happens, and each request. */
export type LogLevel = 'error' | 'info' | 'debug'

/** Says one line to the operator, as `info` unless told otherwise. Never a secret. */
export type Log = (line: string, level?: LogLevel) => void

/** All that use cases work with. Built once, in main.ts. */
export interface Runtime {
  config: Config
  db: Database
  backends: ReadonlyMap<string, Backend>
  engines: ReadonlyMap<string, Engine>
  environments: Environments
  runs: Runs
  bundles: Bundles
  gateway: Gateway
  networks: Networks
  egress: Egress
  diskSpace: DiskSpace
  /** Absent where nobody serves others. */
  loop?: EventLoop
  log: Log
}
