import type { CopyMethod, Limits } from '../plugin-api/index.ts'
import type { Sandbox } from './sandbox.ts'

/** `removed` means that nobody can use it any more; its files go as soon as no sandbox shares them. */
export type SnapshotState = 'making' | 'ready' | 'forking' | 'removed'

/** The files of a sandbox as of one moment, and the other properties of sandboxes that are made from it. */
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
  /** The sandbox from which it was taken, which may be gone. */
  sandboxId: string
  limits: Limits
  /** How much disk it uses; 0 when that is not known. */
  bytes: number
  /** How long the sandbox could not write, in ms. */
  frozenMs: number
  method: CopyMethod
  /** How the disks of sandboxes are made from it. */
  forkMethod: CopyMethod
  createdAt: string
}

export type SnapshotInput = Omit<Snapshot, 'createdAt' | 'bytes' | 'frozenMs' | 'method' | 'forkMethod'>

export interface SnapshotPage {
  limit: number
  /** The id of the last snapshot on the page before. */
  before?: string
  /** Selects the snapshots of this sandbox. */
  sandboxId?: string
}
