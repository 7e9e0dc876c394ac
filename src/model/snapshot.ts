import type { CopyMethod, Limits } from '../plugin-api/index.ts'
import type { Sandbox } from './sandbox.ts'

/** `removed`: nobody can use it any more, and its files go as soon as no sandbox shares them. */
export type SnapshotState = 'making' | 'ready' | 'forking' | 'removed'

/** The files of a sandbox as of one moment, and what else a sandbox that is made of it begins with. */
export interface Snapshot
  extends Pick<
    Sandbox,
    | 'teamId'
    | 'backend'
    | 'agentSlug'
    | 'agentName'
    | 'envs'
    | 'cwd'
    | 'network'
    | 'timeoutMs'
    | 'deploymentId'
    | 'bundle'
    | 'externalUserId'
  > {
  id: string
  name?: string
  state: SnapshotState
  /** The sandbox that it was taken of, which may be gone. */
  sandboxId: string
  limits: Limits
  /** What it takes on the disk. 0: nobody knows. */
  bytes: number
  /** How long the sandbox could not write, in ms. */
  frozenMs: number
  method: CopyMethod
  /** How sandboxes are made of it. */
  forkMethod: CopyMethod
  createdAt: string
}

export type SnapshotInput = Omit<Snapshot, 'createdAt' | 'bytes' | 'frozenMs' | 'method' | 'forkMethod'>

export interface SnapshotPage {
  limit: number
  /** The id of the last one of the page before. */
  before?: string
  /** Only those of this sandbox. */
  sandboxId?: string
}
