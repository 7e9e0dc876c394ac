import type { Database } from 'bun:sqlite'
import type { Config } from '../core/config.ts'
import type { Log } from '../core/runtime.ts'
import { findSetting, saveSetting } from '../db/settings.ts'
import { wordsOf } from '../errors.ts'
import { commandOf } from '../start/executable.ts'

/** The setting with the time of the last backup that a server has made by itself. */
const LAST_BACKUP = 'last_backup_at'
/** How long after a failure the next try comes, unless the usual time is shorter. */
const RETRY_MS = 600_000
const LOOK_MS = 1000

/**
 * Makes backups as the settings say; the first one comes at once when the last is too old. Each is made in its own process, so
 * that compressing and encrypting delay no request. A failure is logged. `close` ends one that is being made.
 */
export function startBackups(
  { db, config, log }: { db: Database; config: Config; log: Log },
  environment: NodeJS.ProcessEnv,
): { close(): Promise<void> } {
  const { backups } = config
  if (!backups) return { close: async () => {} }
  const { everyMs } = backups
  const last = Date.parse(findSetting(db, LAST_BACKUP) ?? '') || 0
  let nextAt = last + everyMs
  let running: { child: Bun.Subprocess; done: Promise<void> } | undefined
  let isClosing = false

  const make = async (child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>) => {
    const [made, problem, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    if (isClosing) return
    const at = Date.now()
    nextAt = at + (code === 0 ? everyMs : Math.min(everyMs, RETRY_MS))
    // A backup counts even when the files of a sandbox are missing in it.
    if (made !== '') {
      log(`backup: ${made.trim()}`)
      saveSetting(db, LAST_BACKUP, new Date(at).toISOString())
      nextAt = at + everyMs
    }
    if (code !== 0) log(`backup: ${problem.trim() || `ended with ${code}`}`, 'error')
  }

  const look = () => {
    if (running || isClosing || Date.now() < nextAt) return
    const child = Bun.spawn(commandOf('backup', 'create', ...wordsFor(config)), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment,
    })
    const done = make(child)
      .catch(error => log(`backup: ${wordsOf(error)}`, 'error'))
      .finally(() => {
        running = undefined
      })
    running = { child, done }
  }
  const timer = setInterval(look, Math.min(everyMs, LOOK_MS))

  return {
    async close() {
      isClosing = true
      clearInterval(timer)
      running?.child.kill()
      await running?.done
    },
  }
}

function wordsFor({ dataDirectory, backups }: Config): string[] {
  const { to = '', keep, keepDays, recipients = [], passphraseFile } = backups ?? {}
  return [
    ...[to, '--data-dir', dataDirectory, '--quiet'],
    ...(keep === undefined ? [] : ['--keep', `${keep}`]),
    ...(keepDays === undefined ? [] : ['--keep-days', `${keepDays}`]),
    ...recipients.flatMap(recipient => ['--recipient', recipient]),
    ...(passphraseFile === undefined ? [] : ['--passphrase-file', passphraseFile]),
  ]
}
