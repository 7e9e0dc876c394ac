import type { Database } from 'bun:sqlite'
import type { Egress } from '../egress/egress.ts'
import type { Policy } from '../egress/policy.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { SandboxNetwork } from '../model/sandbox.ts'
import type {
  Backend,
  DiskSpace,
  Engine,
  Environment,
  EnvironmentProcesses,
  EnvironmentSpec,
  Steering,
  StoredMessage,
} from '../plugin-api/index.ts'
import type { Runs } from '../runs/registry.ts'
import type { Config, LogLevel } from './config.ts'

/** Everything that use cases work with. `createRuntime` in src/start builds it once. */
export interface Runtime {
  config: Config
  db: Database
  backends: ReadonlyMap<string, Backend>
  engines: ReadonlyMap<string, Engine>
  environments: Environments
  runs: Runs
  bundles: Bundles
  /** What goes to running turns. */
  steerings: Steerings
  gateway: Gateway
  networks: Networks
  egress: Egress
  diskSpace: DiskSpace
  /** Absent in a process that serves nobody. */
  loop?: EventLoop
  log: Log
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

/** Writes one line to the operator's log, at the level `info` by default. Never a secret. */
export type Log = (line: string, level?: LogLevel) => void

/** What the server knows of its own event loop. */
export interface EventLoop {
  /** Keeps what is begun now, for a report that the loop stands still. Never a secret. */
  entered(what: string): void
  /** How late the loop was in the last minute, in milliseconds. */
  delayMs(): { p50: number; p99: number; max: number }
}

/** The environments of all sandboxes, each on the backend that made it. */
export interface Environments {
  create(spec: EnvironmentSpec & { backend: string }): Promise<Environment>
  /** Throws sandbox_unavailable when the backend is not here or has lost it. */
  get(sandbox: { backend: string; environmentId: string }): Promise<Environment>
  /** Why an environment does not run, or did not start, as far as its backend knows. Makes no request to it. */
  troubleOf(sandbox: { backend: string; environmentId: string }): string | undefined
  /** The processes of an environment that `get` gave: its own, or kept here for a backend that keeps none. */
  processesOf(environment: Environment): EnvironmentProcesses
  /** Marks an environment as in use until the result is disposed of. */
  hold(environmentId: string): Disposable
  /** Lists the environments that are held now, or were held since the last call. */
  takeHeld(): string[]
  /** Idempotent; does nothing for an environment that does not exist. */
  destroy(sandbox: { backend: string; environmentId: string }): Promise<void>
}

/** What each sandbox may reach, also before it has its row. */
export interface Networks {
  /** Throws when there is no such sandbox. */
  policyOf(environmentId: string): Policy
  /** Gives this network to an environment that has no row yet, until it is called again without a network. */
  prepare(environmentId: string, network?: SandboxNetwork): void
  /** Changes of one environment wait for each other. */
  inTurn<T>(environmentId: string, change: () => Promise<T>): Promise<T>
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
