import type { NetworkRequest } from '../core/sandboxes/networks.ts'
import type { Backend, Environment, Isolation, Limits } from '../plugin-api/index.ts'
import type { Bait } from './bait.ts'

/** The parts that a probe works with: two sandboxes of the selftest's own server, and things that they must not reach. */
export interface Subject {
  readonly backend: Backend
  readonly backendName: string
  /** The runtime that was chosen for the engine, on docker. */
  readonly runtime?: string
  readonly isolation: Isolation
  /** True when the server runs as root, which can confine more than an ordinary user can. */
  readonly isRoot: boolean
  /** The sandbox that attacks. */
  readonly environment: Environment
  /** Another sandbox of the same server. */
  readonly other: Environment
  /**
   * The things that the other sandbox keeps, besides its command line: see `inside/peer.ts`. The list is empty where threadbox's program
   * is not inside.
   */
  readonly peerKeeps: readonly string[]
  /** Makes one more sandbox, for a probe that may break it. The selftest removes it at its end, unless `remove` has. */
  create(options?: SubjectSandbox): Promise<Environment>
  /** Removes a sandbox as a client of the server does. Resolves when nothing of it is left, as the server promises. */
  remove(environment: Environment): Promise<void>
  /** Answers a DNS name in place of the system's resolver, until it is disposed of. Each look-up calls `answer` again. */
  answerName(name: string, answer: () => readonly string[]): Disposable
  /** The data directory of the selftest's server. */
  readonly dataDirectory: string
  /** A directory of the host, mode 777, with the files `secret` and `target`, mode 666. Both contain `secret`. */
  readonly hostDirectory: string
  readonly secret: string
  /** The other sandbox has this word in the names of its files and sockets and in its command line. */
  readonly peer: string
  readonly bait: Bait
  /** Aborts with the selftest, and when the time of this subject's probe is over. */
  readonly signal: AbortSignal
}

/** The default limits are the server's. Without rules the sandbox may reach what the server lets everybody reach. */
export interface SubjectSandbox extends NetworkRequest {
  limits?: Limits
}
