import type { Config, LogLevel } from '../core/config.ts'
import { createLineIds, type LineIdFinder } from '../core/observe/line-ids.ts'
import type { Log } from '../core/runtime.ts'

const levels: readonly LogLevel[] = ['error', 'info', 'debug']

const isWritten = (level: LogLevel, weakest: LogLevel) => levels.indexOf(level) <= levels.indexOf(weakest)

/** Writes lines to stderr, each with the time: those of this level and of stronger ones. */
export const createLog =
  (weakest: LogLevel): Log =>
  (line, level = 'info') => {
    if (isWritten(level, weakest)) console.error(`${new Date().toISOString()} ${line}`)
  }

/** The same, each line an object of JSON: time, level, message, and the ids of what it is about. */
const createJsonLog =
  (weakest: LogLevel, ids: Pick<LineIdFinder, 'of'>): Log =>
  (message, level = 'info', given) => {
    if (!isWritten(level, weakest)) return
    console.error(JSON.stringify({ time: new Date().toISOString(), level, message, ...ids.of(message, given) }))
  }

/** The log that the configuration wants. `learn`: lines have the ids that this runtime knows from then on. */
export function openLog({ log, logLevel }: Pick<Config, 'log' | 'logLevel'>): {
  log: Log
  learn: LineIdFinder['learn']
} {
  if (log === 'text') return { log: createLog(logLevel), learn: () => {} }
  const ids = createLineIds()
  return { log: createJsonLog(logLevel, ids), learn: ids.learn }
}
