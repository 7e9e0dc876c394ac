import type { Caller } from '../../../core/access/caller.ts'
import type { Runtime } from '../../../core/runtime.ts'

/** The sandbox that a request is for, and who sent it. */
export interface Target {
  runtime: Runtime
  caller: Caller
  sandboxId: string
}
