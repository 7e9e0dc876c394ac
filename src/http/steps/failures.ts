import type { Log } from '../../core/runtime.ts'
import { failureResponse } from '../failure.ts'
import type { Step } from './step.ts'

/** Answers with the error that a step after it has thrown. */
export const failures =
  (log: Log): Step =>
  async ({ id }, next) => {
    try {
      return await next()
    } catch (error) {
      return failureResponse(error, log, id)
    }
  }
