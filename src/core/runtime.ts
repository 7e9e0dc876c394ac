import type { Database } from 'bun:sqlite'
import type { Egress } from '../egress/egress.ts'
import type { Policy } from '../egress/policy.ts'
import type { BoundSecret } from '../egress/secrets/binding.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { EnvironmentPlace } from '../model/environment.ts'
import type { Sandbox, SandboxNetwork } from '../model/sandbox.ts'
import type { Use } from '../model/use.ts'
import type {
  Backend,
  DiskSpace,
  Engine,
  Environment,
  EnvironmentProcesses,
  EnvironmentSpec,
  ProcessInfo,
  Steering,
  StoredMessage,
} from '../plugin-api/index.ts'
import type { Runs } from '../runs/registry.ts'
import type { AuditLog } from './audit/audit-log.ts'
import type { Config, LogLevel } from './config.ts'
import type { EventFeed } from './events/feed.ts'
import type { Limits } from './limits/limits.ts'
import type { TeamLimits } from './limits/team-limits.ts'
import type { Family } from './metrics/series.ts'
import type { LineIds } from './observe/line-ids.ts'
import type { Observers } from './observe/observers.ts'

/** Everything that use cases work with. `createRuntime` in src/start builds it once. */
export interface Runtime {
  config: Config
  db: Database
  backends: ReadonlyMap<string, Backend>
  readyBackends: ReadyBackends
  engines: ReadonlyMap<string, Engine>
  environments: Environments
  uses: Uses
  spares: Spares
  runs: Runs
  bundles: Bundles
  /** What goes to running turns. */
  steerings: Steerings
  gateway: Gateway
  networks: Networks
  trust: Trust
  egress: Egress
  diskSpace: DiskSpace
  /** Checks how much callers may do at once and in a period. */
  limits: Limits
  /** Checks how much teams may keep. */
  teamLimits: TeamLimits
  /** Tells readers of events when there are new ones. */
  events: EventFeed
  processEvents: ProcessEvents
  /** Reports what happens in this process to metrics, traces and the audit log. */
  observers: Observers
  schedules: Scheduler
  /** The time to live of sandboxes that E2B's clients made. */
  e2b: E2bLives
  metrics: Metrics
  audit: AuditLog
  /** Absent in a process that serves nobody. */
  loop?: EventLoop
  log: Log
}

/** Runs schedules when they are due. */
export interface Scheduler {
  /** Begins to run schedules. Each that was missed while no server ran is run once. */
  start(): void
  /** Looks for due schedules, after a request has changed one. Before `start` this does nothing. */
  wake(): void
  /** The present time of the clock that schedules follow. */
  now(): Date
  /** Begins no more runs. Resolves when no run is being begun; commands go on, and the next server follows them. */
  close(): Promise<void>
}

/** Ends sandboxes whose clients gave them a time to live, and what is under way there. */
export interface E2bLives {
  /** Ends the sandboxes whose time is up, and each later one in time. Call it at the start, and when an end has changed. */
  wake(): void
  /** Makes changes of one sandbox one after the other. */
  inTurn<T>(sandboxId: string, change: () => Promise<T>): Promise<T>
  /** Calls `onCut` once when the sandbox is removed or paused, unless the result is disposed of before. */
  watch(sandboxId: string, onCut: () => void): Disposable
  /** Calls everyone who watches a sandbox. */
  cut(sandboxId: string): void
  /** Ends no more sandboxes. Resolves when none is being ended. */
  close(): Promise<void>
}

/** Figures of this server since its start. */
export interface Metrics {
  families(): Promise<Family[]>
  /** Adds figures that another part of the server counts. */
  include(read: () => readonly Family[]): void
}

/** Stores that processes begin and end, as events. */
export interface ProcessEvents {
  /** Stores that a process has begun, and its end when it comes. */
  started(sandbox: Sandbox, processes: EnvironmentProcesses, info: ProcessInfo): Promise<void>
  /**
   * Stores the ends of running processes, such as those that an earlier server began. Further calls for one process have no
   * effect.
   */
  follow(sandbox: Sandbox, processes: EnvironmentProcesses, infos: readonly ProcessInfo[]): void
  removed(sandbox: Sandbox, pid: number): Promise<void>
  /** Stops following: processes go on without this server. */
  close(): void
}

/** The messages for running turns, one source for each active run whose engine takes them. */
export interface Steerings {
  /** Begins a run's. Ends what an earlier run of the thread has. */
  open(threadId: string): RunSteering
  find(threadId: string): RunSteering | undefined
}

/** The messages for one run. Each is a row until the run has stored that the engine has it. */
export interface RunSteering extends Steering {
  /** Gives the run a message: `id` is its row's. */
  offer(id: string, messages: readonly StoredMessage[]): void
  /** Takes a message back. False when the engine has it, or the run never got it. */
  withdraw(id: string): boolean
  /** Begins to give messages to the engine, each as `prepare` returns it. */
  begin(prepare: (messages: readonly StoredMessage[]) => Promise<StoredMessage[]>): void
  /** Gives the engine nothing more. */
  close(): void
}

/**
 * Writes one line to the operator's log, at the level `info` by default; never a secret. `ids` are those that the line does not
 * name.
 */
export type Log = (line: string, level?: LogLevel, ids?: LineIds) => void

/** What the server knows of its own event loop. */
export interface EventLoop {
  /** Keeps what is begun now, for a report that the loop stands still. Never a secret. */
  entered(what: string): void
  /** How late the loop was in the last minute, in milliseconds. */
  delayMs(): { p50: number; p99: number; max: number }
}

/** Tells which backends besides the default can make sandboxes: a server starts without them too. */
export interface ReadyBackends {
  /**
   * Names the required checks that failed at the last try, as text for any caller. Undefined for the default backend and for one
   * that is ready. Never rejects.
   */
  troubleOf(name: string): Promise<string | undefined>
}

/** The environments of all sandboxes, each on the backend that made it. */
export interface Environments {
  create(spec: EnvironmentSpec & { backend: string }): Promise<Environment>
  /** Throws sandbox_unavailable when the backend is not here or has lost it. */
  get(sandbox: { backend: string; environmentId: string }): Promise<Environment>
  /** Why an environment does not run, or did not start, as far as its backend knows. Makes no request to it. */
  troubleOf(sandbox: { backend: string; environmentId: string }): string | undefined
  /** Returns the ids of a backend's running environments, as far as it knows; undefined when it cannot tell. */
  findRunning(backend: string): ReadonlySet<string> | undefined
  /**
   * Calls `store` with the ids of the environments that ran at the last call and have stopped since. Calls wait for each other.
   * When `store` rejects, so does this, and the next call passes the same ids again.
   */
  handStopped(store: (environmentIds: readonly string[]) => Promise<void>): Promise<void>
  /** The processes of an environment that `get` gave: its own, or kept here for a backend that keeps none. */
  processesOf(environment: Environment): EnvironmentProcesses
  /** Marks an environment as in use until the result is disposed of. */
  hold(environmentId: string): Disposable
  /** Lists the environments that are held now, or were held since the last call. */
  takeHeld(): string[]
  /** Idempotent; does nothing for an environment that does not exist. */
  destroy(sandbox: { backend: string; environmentId: string }): Promise<void>
}

/** Measures what sandboxes use now, and remembers the last hour. */
export interface Uses {
  /** The time between samples, while not too many sandboxes run. */
  readonly everyMs: number
  /** Notes that a sandbox is in use: from then on it is sampled as long as it runs. */
  note(place: EnvironmentPlace): void
  /**
   * Returns what each environment uses. Undefined for one that does not run, and when its backend does not answer in time. Never
   * rejects.
   */
  now(places: readonly EnvironmentPlace[]): Promise<(Use | undefined)[]>
  /** The samples of an environment, oldest first. */
  samples(environmentId: string): readonly Use[]
  forget(environmentId: string): void
  close(): void
}

/** The settings from which an environment is made, before it belongs to a sandbox. */
export type EnvironmentStart = Omit<EnvironmentSpec, 'id' | 'env' | 'network' | 'isSpare' | 'onProgress'> & {
  backend: string
}

/** Environments that stand ready for the next creates. No sandbox has used them before. */
export interface Spares {
  /** Begins to keep spares, of this kind first; before, none are kept. Resolves when they are ready, or cannot be made. */
  start(first: EnvironmentStart): Promise<void>
  /**
   * Takes a spare that equals what `create` would make: only the caller keeps or destroys it then. Returns undefined when no
   * spare fits.
   */
  take(
    spec: Omit<EnvironmentSpec, 'id' | 'isSpare' | 'onProgress'> & { backend: string },
  ): Promise<Environment | undefined>
  /** Notes the settings of a create that succeeded: the next create may ask for the same. */
  wasAsked(spec: Omit<EnvironmentSpec, 'id' | 'isSpare' | 'onProgress'> & { backend: string }): void
  /** How many spares are ready. */
  count(): number
  /** Delays the making of spares for a moment, because the server has a request to answer. */
  defer(): void
  /** Prevents that a spare is begun, until the result is disposed of. */
  hold(): Disposable
  /** Removes all spares. Resolves when they are gone, or after some seconds: the next start removes what is left. */
  close(): Promise<void>
}

/** What each sandbox may reach, also before it has its row. */
export interface Networks {
  /** Throws when there is no such sandbox. */
  policyOf(environmentId: string): Policy
  /** The secrets that an environment's sandbox may use; empty when there is no such sandbox. */
  secretsOf(environmentId: string): readonly BoundSecret[]
  /**
   * Sets the network of an environment that has no row yet; a call without a network removes it. `teamId` is the team whose
   * secrets it may use.
   */
  prepare(environmentId: string, network?: SandboxNetwork, teamId?: string): void
  /** Changes of one environment wait for each other. */
  inTurn<T>(environmentId: string, change: () => Promise<T>): Promise<T>
}

/** Lets programs in sandboxes use secrets whose values never enter the sandbox. */
export interface Trust {
  /** Does what `bind` does for an environment that is being made, and resolves when its certificate stores have the authority. */
  prepare(environment: Environment): Promise<Environment>
  /** Puts what these secrets need into an environment before it is bound to them. Rejects when that cannot be written. */
  install(environment: Environment, bound: readonly BoundSecret[]): Promise<void>
  /** Returns the environment with the variables of its secrets added for every program, and with the authority trusted. */
  bind(environment: Environment): Environment
  /**
   * The secrets that a connection may use: with a pass, the secret that was lent for that pass; otherwise those of the
   * environment.
   */
  secretsOf(environmentId: string, pass?: string): readonly BoundSecret[]
  /** Lends a secret for one operation. Undefined on a server that does not end TLS. */
  lend(environmentId: string, secret: BoundSecret): Promise<Loan | undefined>
  /** Forgets an environment that is gone. */
  forget(environmentId: string): void
}

/** A secret that programs may use until this is disposed of. They show the pass to the proxy. */
export interface Loan extends Disposable {
  pass: string
  /** The PEM certificate that vouches for the hosts of the secret. */
  authority: string
}

/** The bundles of deployed agents: files named by the hash of their content. A file is there wholly or not at all. */
export interface Bundles {
  /** Takes at most `maxBytes`. Throws payload_too_large that names the field. */
  put(field: string, body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<StoredBundle>
  /** Keeps files from being removed until the result is disposed of. */
  hold(...names: (string | undefined)[]): Disposable
  size(name: string): Promise<number>
  read(name: string): ReadableStream<Uint8Array>
  /** Removes what no version and no sandbox needs, and what interrupted uploads have left. */
  removeUnused(): Promise<void>
}

/** A file that is kept until it is disposed of; then it is removed, unless a version or a sandbox needs it. */
export interface StoredBundle extends Disposable {
  name: string
  byteLength: number
}
