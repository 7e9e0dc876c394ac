import type { Environment } from './environment.ts'

/** A functional probe's outcome. `required` ones refuse to let the server start when they fail. */
export interface Check {
  name: string
  ok: boolean
  required: boolean
  detail: string
  remedy?: string
}

/** What one sandbox may use. Undefined means that the backend does not limit it. */
export interface Limits {
  memoryMb?: number
  processes?: number
  /** CPU cores, in fractions. */
  cpus?: number
  diskMb?: number
}

export interface EnvironmentSpec {
  /** Chosen by the caller, `env_` over a UUIDv7; safe as a file name. */
  id: string
  /** What it starts from, each backend by its own field; without it, by the backend's default. nsjail: a base. */
  base?: string
  /** docker: an image. */
  image?: string
  /** e2b: a template. */
  template?: string
  limits: Limits
  /** The sandbox's own variables, for a backend that sets them for all that runs. Each spawn brings them anyway. */
  env?: Readonly<Record<string, string>>
  /** For a backend whose environments do not leave through the server's proxy. */
  network?: NetworkSpec
}

/** What an environment may reach. Each layer must allow; undefined `allowOut` allows all that is public. */
export interface NetworkSpec {
  mode: 'public' | 'none'
  layers: readonly { allowOut?: readonly string[]; denyOut?: readonly string[] }[]
}

/** Where isolated environments live. Built once by its plugin, then shared by all of the server. */
export interface Backend {
  readonly name: string
  readonly isolation: 'namespaces' | 'container' | 'microvm'
  /**
   * How environments reach the network. `proxy`, which is also meant without it: by the server's proxy alone, at
   * 127.0.0.1:3128 inside. `own`: by themselves, under `EnvironmentSpec.network`.
   */
  readonly egress?: 'proxy' | 'own'
  check(): Promise<Check[]>
  /** Makes an environment and waits until it answers. A rejected create leaves nothing behind. */
  create(spec: EnvironmentSpec): Promise<Environment>
  /** Finds an environment, also after a restart of the server. Undefined when it does not exist. */
  open(environmentId: string): Promise<Environment | undefined>
  /** Why an environment does not run, or did not start when it was to, as far as this server knows. */
  troubleOf?(environmentId: string): string | undefined
  /** Ids of all that exists, for the sweep of orphans. */
  list(): Promise<string[]>
  /** Lets go of connections and timers; environments go on. */
  close(): Promise<void>
}
