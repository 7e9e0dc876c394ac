import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { objectOf, parseJson } from '../../read/json.ts'
import { readConfig } from '../../start/config.ts'
import { isBuilt } from '../../start/executable.ts'
import { loadPlugins } from '../../start/load-plugins.ts'

/** What a guard is told in its first line. */
interface Charge {
  dataDirectory: string
  settings: readonly string[]
}

/** The word that ends a guard: its parent has cleaned up itself. */
const DONE = 'done'

/** What its parent had started, such as a mount, or a container that an engine makes, may go on a little without it. */
const TRIES = 25
const LOOKS = 3
const PAUSE_MS = 200

export interface Guard {
  /** Has the guard clean up, unless nothing is left to. Resolves when it has gone. */
  dismiss(isClean: boolean): Promise<void>
}

/**
 * Starts a process that outlives this one for as long as it takes to remove what this one leaves, should it be killed. It
 * is in a session of its own, so that a terminal's Ctrl-C is not for it. `settings` may hold keys: they are in no command
 * line. Resolves when it cannot miss its charge any more: the directory is to be made after that.
 */
export async function startGuard(charge: Charge): Promise<Guard> {
  const command = [process.execPath, ...(isBuilt ? [] : [Bun.main]), 'guard']
  const child = Bun.spawn(command, { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  child.stdin.write(`${JSON.stringify(charge)}\n`)
  await child.stdin.flush()
  return {
    async dismiss(isClean) {
      if (isClean) child.stdin.write(`${DONE}\n`)
      await child.stdin.end()
      await child.exited
    },
  }
}

/** Waits for the end of its parent, then removes the parent's environments and its data directory. */
export async function guard(): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const [first = '', last] = (await Bun.stdin.text()).split('\n')
  // Killed before it had made anything.
  if (last === DONE || first === '') return
  const charge = chargeOf(first)
  for (let tries = 1, looks = 0; existsSync(charge.dataDirectory); tries++) {
    try {
      looks = (await destroyAll(charge)) === 0 ? looks + 1 : 0
      if (looks === LOOKS) await rm(charge.dataDirectory, { recursive: true, force: true })
    } catch (error) {
      if (tries === TRIES) throw error
    }
    await Bun.sleep(PAUSE_MS)
  }
}

/** Gives how many there were. */
async function destroyAll({ dataDirectory, settings }: Charge): Promise<number> {
  const config = await readConfig([...settings, '--data-dir', dataDirectory], process.env)
  const backend = (await loadPlugins(config)).backends.get(config.backend)
  const ids = (await backend?.list()) ?? []
  for (const id of ids) await (await backend?.open(id))?.destroy()
  await backend?.close()
  return ids.length
}

function chargeOf(line: string): Charge {
  const { dataDirectory, settings } = objectOf(parseJson(line)) ?? {}
  const isDirectory = typeof dataDirectory === 'string' && isAbsolute(dataDirectory)
  if (!isDirectory || !Array.isArray(settings)) throw new Error('run and exec start the guard')
  return { dataDirectory, settings: settings.map(String) }
}
