import { rm } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { readConfig } from '../../config.ts'
import { objectOf, parseJson } from '../../json.ts'
import { log } from '../log.ts'
import type { LoadPlugins } from '../open-runtime.ts'

/** What a guard is told in its first line. */
interface Charge {
  dataDirectory: string
  settings: string[]
}

/** The word that ends a guard: its parent has cleaned up itself. */
const DONE = 'done'

/** How often a directory that is still held is tried again, every 100 ms. */
const RETRIES = 50

export interface Guard {
  /** Resolves when the guard has gone. To be called when nothing is left to clean up. */
  dismiss(): Promise<void>
}

/**
 * Starts a process that outlives this one for as long as it takes to remove what this one leaves, should it be killed. It
 * is in a session of its own, so that a terminal's Ctrl-C is not for it. `settings` may hold keys: they are in no command line.
 */
export function startGuard(charge: Charge): Guard {
  const compiled = import.meta.dir.startsWith('/$bunfs/')
  const command = [process.execPath, ...(compiled ? [] : [Bun.main]), 'guard']
  const child = Bun.spawn(command, { stdio: ['pipe', 'ignore', 'ignore'], cwd: '/', detached: true })
  child.stdin.write(`${JSON.stringify(charge)}\n`)
  void child.stdin.flush()
  return {
    async dismiss() {
      child.stdin.write(`${DONE}\n`)
      await child.stdin.end()
      await child.exited
    },
  }
}

/** Waits for the end of its parent, then removes the parent's environments and its data directory. */
export async function guard(load: LoadPlugins): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const [first = '', last] = (await Bun.stdin.text()).split('\n')
  if (last === DONE) return
  const { dataDirectory, settings } = chargeOf(first)
  const config = await readConfig([...settings, '--data-dir', dataDirectory], process.env)
  const serveProxy = (_: string, socket: { destroy(): void }) => void socket.destroy()
  const backend = (await load(config, { dataDirectory, serveProxy, log })).backends.get(config.backend)
  for (const id of (await backend?.list()) ?? []) await (await backend?.open(id))?.destroy()
  await backend?.close()
  await rm(dataDirectory, { recursive: true, force: true, maxRetries: RETRIES, retryDelay: 100 })
}

function chargeOf(line: string): Charge {
  const { dataDirectory, settings } = objectOf(parseJson(line)) ?? {}
  const isDirectory = typeof dataDirectory === 'string' && isAbsolute(dataDirectory)
  if (!isDirectory || !Array.isArray(settings)) throw new Error('run and exec start the guard')
  return { dataDirectory, settings: settings.map(String) }
}
