import type { Environment } from './environment.ts'
import type { Isolation } from './isolation.ts'
import type { Limits } from './limits.ts'
import type { NetworkSpec } from './network.ts'
import type { Snapshots } from './snapshots.ts'

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
  /**
   * The check concerns only the sandboxes of this class, which cannot be made while it fails; the backend makes others. Never used
   * together with `required`.
   */
  isolation?: Isolation
}

/** The step that a backend is at while it makes an environment, for the client that waits for it. */
export interface CreateProgress {
  /** A few words, such as `pulling the image debian:12`. They never contain a secret. */
  message: string
  /** How much of the step is done, where this is known. */
  doneBytes?: number
  totalBytes?: number
}

/** What the server asks a backend to create. */
export interface EnvironmentSpec {
  /** `env_` and a UUIDv7, chosen by the caller; safe as a file name. */
  id: string
  /** What an environment on nsjail starts from; absent: the backend's default. */
  base?: string
  /** The same on docker. */
  image?: string
  /** What makes its container on docker: one of the engine's runtimes. Absent: the backend's default. */
  runtime?: string
  /** The same on e2b. */
  template?: string
  /** It is isolated at least so. Given only to a backend with `isolationOf`, which said that it can be. */
  isolation?: Isolation
  /** Its files are those of this snapshot, which the same backend took. `base`, `image` and `template` are absent then. */
  snapshot?: string
  limits: Limits
  /** The sandbox's own variables, for a backend that sets them for every process. Each spawn brings them anyway. */
  env?: Readonly<Record<string, string>>
  /** Nobody has asked for this environment yet: it is made ahead of its use, without `env` and `network`. See `Backend.claimSpare`. */
  isSpare?: boolean
  /** For a backend whose environments do not leave through the server's proxy. */
  network?: NetworkSpec
  /** Receives the backend's steps, as often as the backend likes. Absent when nobody waits to see them. */
  onProgress?(progress: CreateProgress): void
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
  /** Says how an environment is isolated when its spec asks for nothing. */
  readonly isolation: Isolation
  /**
   * The class that an environment of this spec would have, which may be weaker than what the spec asks for. Makes nothing. Throws
   * an ApiError for a `runtime` that is not offered here. Absent: each has `isolation`.
   */
  isolationOf?(spec: Pick<EnvironmentSpec, 'runtime' | 'isolation'>): Isolation
  /**
   * How environments reach the network. `proxy` (default): only through the server's proxy, at 127.0.0.1:3128 inside.
   * `own`: by themselves, under `EnvironmentSpec.network`.
   */
  readonly egress?: 'proxy' | 'own'
  /** Tries what the backend needs on this machine. */
  check(): Promise<Check[]>
  /** Makes an environment and waits until it answers. A rejected create leaves nothing behind. */
  create(spec: EnvironmentSpec): Promise<Environment>
  /**
   * Absent: every environment is made when it is asked for. Present: the server may make some ahead of their use, which run
   * nothing but `true`, and calls this once for one that gets its sandbox, with the spec of that sandbox and the id of the
   * environment. The spec is as that of its `create`, beside `env` and `network`. Resolves to true when the environment runs
   * and is what `create` would make now; the server destroys it when not.
   */
  claimSpare?(spec: EnvironmentSpec): Promise<boolean>
  /** Finds an environment, also after a restart of the server. Undefined when it does not exist. */
  open(environmentId: string): Promise<Environment | undefined>
  /** Absent when this backend takes no snapshots. */
  readonly snapshots?: Snapshots
  /** Why an environment does not run, or did not start, as far as this server knows. */
  troubleOf?(environmentId: string): string | undefined
  /** Lists the ids of the environments that run now, as far as this server knows. Makes no request. Absent: nobody can tell. */
  listRunning?(): string[]
  /** Lists the names that `EnvironmentSpec.base` may have here. Absent: none. */
  listBases?(): Promise<string[]>
  /** Lists the ids of all environments that exist. The server destroys those that belong to no sandbox. */
  list(): Promise<string[]>
  /** Closes connections and timers; environments go on. */
  close(): Promise<void>
}
