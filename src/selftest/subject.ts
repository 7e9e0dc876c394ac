import type { NetworkRequest } from '../core/sandboxes/networks.ts'
import type { Backend, Environment, Isolation, Limits } from '../plugin-api/index.ts'
import type { Bait } from './bait.ts'

/** What a probe works on: two sandboxes of a server of the selftest's own, and what they must not reach. */
export interface Subject {
  readonly backend: Backend
  readonly backendName: string
  /** The engine's runtime that was chosen, on docker. */
  readonly runtime?: string
  readonly isolation: Isolation
  /** Whether the server runs as root, who can confine more than an ordinary user can. */
  readonly isRoot: boolean
  /** The sandbox that attacks. */
  readonly environment: Environment
  /** Another one of the same server. */
  readonly other: Environment
  /** What the other one keeps, beside its command line: see `inside/peer.ts`. Empty where threadbox's program is not inside. */
  readonly peerKeeps: readonly string[]
  /** Makes one more sandbox, for a probe that may break it. The selftest removes it at its end, unless `remove` has. */
  create(options?: SubjectSandbox): Promise<Environment>
  /** Removes a sandbox as a client of the server does. Resolves when nothing of it is left, as the server promises. */
  remove(environment: Environment): Promise<void>
  /** Answers a name of the DNS in the place of the system's resolver, until it is disposed of. Asked anew each time. */
  answerName(name: string, answer: () => readonly string[]): Disposable
  /** Where the server of the selftest keeps its data. */
  readonly dataDirectory: string
  /** A directory of the host, mode 777, with the files `secret` and `target`, mode 666. Both contain `secret`. */
  readonly hostDirectory: string
  readonly secret: string
  /** A word that the other sandbox has in the names of its files and sockets and in its command line. */
  readonly peer: string
  readonly bait: Bait
  /** Aborts with the selftest, and when the time of the probe that has this subject is over. */
  readonly signal: AbortSignal
}

/** Without `limits`: those of the server. Without rules: what the server lets everybody reach. */
export interface SubjectSandbox extends NetworkRequest {
  limits?: Limits
}
