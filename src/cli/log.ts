import type { Log, LogLevel } from '../core/runtime.ts'

const order: readonly LogLevel[] = ['error', 'info', 'debug']

/** Says lines to the operator, with the time: those of this level and of stronger ones. Never a secret. */
export const createLog =
  (most: LogLevel): Log =>
  (line, level = 'info') => {
    if (order.indexOf(level) <= order.indexOf(most)) console.error(`${new Date().toISOString()} ${line}`)
  }
