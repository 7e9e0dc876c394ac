import type { Memory } from '../../async/shared-memory.ts'
import { getKey } from '../caller.ts'
import type { Step } from './step.ts'

/** Lets the request's body take memory from what all bodies share, until the request is answered. */
export const bodyMemory =
  (memory: Memory): Step =>
  async (context, next) => {
    using loan = memory.borrow(getKey(context))
    context.bodyMemory = loan
    return await next()
  }
