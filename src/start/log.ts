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

/** Makes a log whose lines are JSON objects: time, level, message, and the ids that the message is about. */
const createJsonLog =
  (weakest: LogLevel, ids: Pick<LineIdFinder, 'of'>): Log =>
  (message, level = 'info', given) => {
    if (!isWritten(level, weakest)) return
    console.error(JSON.stringify({ time: new Date().toISOString(), level, message, ...ids.of(message, given) }))
  }

/** Makes the log that the configuration asks for. After `learn`, lines have the ids that this runtime knows. */
export function openLog({ log, logLevel }: Pick<Config, 'log' | 'logLevel'>): {
  log: Log
  learn: LineIdFinder['learn']
} {
  if (log === 'text') return { log: createLog(logLevel), learn: () => {} }
  const ids = createLineIds()
  return { log: createJsonLog(logLevel, ids), learn: ids.learn }
}
