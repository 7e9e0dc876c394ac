import { listOverdueApprovals } from '../../db/approvals.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { listOverdueClientCalls } from '../../db/client-calls.ts'
import { inTransaction } from '../../db/open.ts'
import { describeFault } from '../../runs/fault.ts'
import { NOBODY_ANSWERED, storeDecision, storeOutput } from '../chat/answers.ts'
import { continueDue } from '../chat/continue.ts'
import type { Runtime } from '../runtime.ts'

/**
 * Ends the waiting for what nobody has answered in time: such a call counts as denied, and a client's as failed. Then lets
 * every reply go on that waits for nothing more, also those that a stop of the server kept from it. Never rejects: a failure
 * is logged, and tried again at the next sweep.
 */
export async function sweepWaiting(runtime: Runtime, now = new Date()): Promise<void> {
  const { db, log } = runtime
  const moment = now.toISOString()
  try {
    await writeWhenFree(db, () =>
      inTransaction(db, () => {
        for (const approval of listOverdueApprovals(db, moment)) storeDecision(db, approval, { status: 'expired' })
        for (const call of listOverdueClientCalls(db, moment))
          storeOutput(db, call, { errorText: NOBODY_ANSWERED }, 'expired')
      }),
    )
  } catch (error) {
    log(`what nobody has answered in time: ${describeFault(error)}`, 'error')
  }
  continueDue(runtime)
}
