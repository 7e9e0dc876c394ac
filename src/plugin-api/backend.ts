import type { Environment } from './environment.ts'
import type { NetworkSpec } from './network.ts'

/**
 * The result of trying one thing that a backend needs. The server does not start when a required check has failed.
 *
 * @example
 * const check: Check = {
 *   name: 'KVM',
 *   ok: false,
 *   required: true,
 *   detail: '/dev/kvm cannot be opened: permission denied',
 *   remedy: 'Add the user to the group kvm.',
 * }
 */
export interface Check {
  name: string
  ok: boolean
  required: boolean
  detail: string
  remedy?: string
}

/** What one sandbox may use. An absent field: the backend does not limit it. */
export interface Limits {
  memoryMb?: number
  processes?: number
  /** CPU cores, in fractions. */
  cpus?: number
  diskMb?: number
}

/** What the server asks a backend to create. */
export interface EnvironmentSpec {
  /** `env_` and a UUIDv7, chosen by the caller; safe as a file name. */
  id: string
  /** What an environment on nsjail starts from; absent: the backend's default. */
  base?: string
  /** The same on docker. */
  image?: string
  /** The same on e2b. */
  template?: string
  limits: Limits
  /** The sandbox's own variables, for a backend that sets them for every process. Each spawn brings them anyway. */
  env?: Readonly<Record<string, string>>
  /** For a backend whose environments do not leave through the server's proxy. */
  network?: NetworkSpec
}

/**
 * Where isolated environments live. A plugin makes it once; the whole server shares it.
 *
 * @example
 * const microvms: Backend = {
 *   name: 'microvms',
 *   isolation: 'microvm',
 *   check: async () => [{ name: 'KVM', ok: existsSync('/dev/kvm'), required: true, detail: '/dev/kvm' }],
 *   create: async spec => toEnvironment(await machines.start(spec.id, spec.limits)),
 *   open: async id => (await machines.has(id) ? toEnvironment(await machines.get(id)) : undefined),
 *   list: () => machines.ids(),
 *   close: async () => {},
 * }
 */
export interface Backend {
  readonly name: string
  readonly isolation: 'namespaces' | 'container' | 'microvm'
  /**
   * How environments reach the network. `proxy` (default): only through the server's proxy, at 127.0.0.1:3128 inside.
   * `own`: by themselves, under `EnvironmentSpec.network`.
   */
  readonly egress?: 'proxy' | 'own'
  /** Tries what the backend needs on this machine. */
  check(): Promise<Check[]>
  /** Makes an environment and waits until it answers. A rejected create leaves nothing behind. */
  create(spec: EnvironmentSpec): Promise<Environment>
  /** Finds an environment, also after a restart of the server. Undefined when it does not exist. */
  open(environmentId: string): Promise<Environment | undefined>
  /** Why an environment does not run, or did not start, as far as this server knows. */
  troubleOf?(environmentId: string): string | undefined
  /** Lists the ids of all environments that exist. The server destroys those that belong to no sandbox. */
  list(): Promise<string[]>
  /** Closes connections and timers; environments go on. */
  close(): Promise<void>
}
