import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { objectOf, parseJson } from '../../read/json.ts'
import { commandOf } from '../../start/executable.ts'
import { killServer } from '../running-servers.ts'
import { type CleanupOrder, destroyAll } from './destroy-all.ts'

/** The word that ends a guard without work: its parent has cleaned up itself. */
const DONE = 'done'

/** Work that the parent had started, such as a mount or the creation of a container, may go on shortly after its end. */
const TRIES = 25
const LOOKS = 3
const PAUSE_MS = 200

export interface Guard {
  /** Lets the guard clean up, unless `isClean`. Resolves when the guard has ended. */
  dismiss(isClean: boolean): Promise<void>
}

/**
 * Starts a process that cleans up after this one if it is killed, and that ends the server it has left. The guard has its own
 * session, so a terminal's Ctrl-C does not reach it. The order is sent over stdin, because `settings` may contain keys. Resolves
 * when the guard has its order: make the directory only after that.
 */
export async function startGuard(order: CleanupOrder): Promise<Guard> {
  const child = Bun.spawn(commandOf('guard'), { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  child.stdin.write(`${JSON.stringify(order)}\n`)
  await child.stdin.flush()
  return {
    async dismiss(isClean) {
      if (isClean) child.stdin.write(`${DONE}\n`)
      await child.stdin.end()
      await child.exited
    },
  }
}

/** Waits until the parent has ended, then removes the parent's environments and its data directory. */
export async function guard(): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const [first = '', last] = (await Bun.stdin.text()).split('\n')
  // The parent was killed before it had made anything.
  if (last === DONE || first === '') return
  const order = parseOrder(first)
  if (order.beside !== undefined) await rm(order.beside, { recursive: true, force: true })
  for (let tries = 1, looks = 0; existsSync(order.dataDirectory); tries++) {
    try {
      killServer(order.dataDirectory)
      looks = (await destroyAll(order)) === 0 ? looks + 1 : 0
      if (looks === LOOKS) await rm(order.dataDirectory, { recursive: true, force: true })
    } catch (error) {
      if (tries === TRIES) throw error
    }
    await Bun.sleep(PAUSE_MS)
  }
}

function parseOrder(line: string): CleanupOrder {
  const { dataDirectory, settings, beside } = objectOf(parseJson(line)) ?? {}
  if (!isPath(dataDirectory) || !Array.isArray(settings))
    throw new Error('run, exec, bench and selftest start the guard')
  return { dataDirectory, settings: settings.map(String), ...(isPath(beside) && { beside }) }
}

const isPath = (value: unknown): value is string => typeof value === 'string' && isAbsolute(value)
