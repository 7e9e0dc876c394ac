import type { LogLevel } from '../core/config.ts'
import type { Log } from '../core/runtime.ts'

const levels: readonly LogLevel[] = ['error', 'info', 'debug']

/** Writes lines to stderr, each with the time: those of this level and of stronger ones. */
export const createLog =
  (weakest: LogLevel): Log =>
  (line, level = 'info') => {
    if (levels.indexOf(level) <= levels.indexOf(weakest)) console.error(`${new Date().toISOString()} ${line}`)
  }
