import type { BudgetRefusal } from '../../gateway/budgets.ts'
import type { GatewaySession } from '../../gateway/gateway.ts'
import type { CallUsage } from '../../gateway/recorder.ts'
import type { ModelAccess } from '../../plugin-api/index.ts'

/** A run's way to its model. It is opened when the engine first asks for it: one without a model never opens it. */
export interface LazySession {
  /** Opens it, the first time. Throws as `open` does, and the signal's reason after an abort. */
  access(): ModelAccess
  readonly isOpen: boolean
  /** Present once a budget has refused a call. */
  readonly refusal: BudgetRefusal | undefined
  /** Returns what calls have used since this was last called; undefined when none has ended. */
  takeUsage(): CallUsage | undefined
  /** Ends its calls. Resolves when what they used can be taken. Idempotent. */
  close(): Promise<void>
}

export function createLazySession(open: () => GatewaySession, signal: AbortSignal): LazySession {
  let session: GatewaySession | undefined
  return {
    access() {
      signal.throwIfAborted()
      session ??= open()
      return session.access
    },
    get isOpen() {
      return session !== undefined
    },
    get refusal() {
      return session?.refusal
    },
    takeUsage: () => session?.takeUsage(),
    close: async () => await session?.close(),
  }
}
