import { createKeyedLock } from '../../async/lock.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { findE2bSandbox, findNextE2bEnd, listEndedE2bSandboxes, saveE2bSandbox } from '../../db/e2b-sandboxes.ts'
import { lasting } from '../../db/lasting.ts'
import { findSandboxById } from '../../db/sandboxes.ts'
import { messageOf } from '../../errors.ts'
import type { E2bSandbox } from '../../model/e2b-sandbox.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { E2bLives, Runtime } from '../runtime.ts'
import { removeSandbox } from '../sandboxes/sandboxes.ts'

/** The longest pause between looks: the clock may be set, and another process may change the database. */
const LOOK_MS = 60_000
/** How long the next try waits after a failure, such as a full disk. */
const FAILED_MS = 5000

/** Ends sandboxes of E2B's clients when their time is up. */
export function createE2bLives(runtimeOf: () => Runtime): E2bLives {
  const watching = new Map<string, Set<() => void>>()
  const inTurn = createKeyedLock()
  let timer: Timer | undefined
  let isClosed = false
  let looking: Promise<void> | undefined
  let isWoken = false

  async function look(): Promise<void> {
    const runtime = runtimeOf()
    const { db, log } = runtime
    const ended = listEndedE2bSandboxes(db, new Date().toISOString())
    const failed = await Promise.all(
      ended.map(({ sandboxId }) =>
        endE2bSandbox(runtime, sandboxId).then(
          () => false,
          error => {
            log(`${sandboxId}: its time is up, and it could not be ended: ${messageOf(error)}`, 'error')
            return true
          },
        ),
      ),
    )
    const next = findNextE2bEnd(db, new Date().toISOString())
    const untilNext = next === undefined ? undefined : Date.parse(next) - Date.now() + 1
    const waits = [untilNext, failed.includes(true) ? FAILED_MS : undefined].filter(each => each !== undefined)
    if (isClosed || waits.length === 0) return
    timer = setTimeout(wake, Math.min(LOOK_MS, ...waits))
    timer.unref()
  }

  function wake(): void {
    if (isClosed) return
    isWoken = true
    looking ??= (async () => {
      while (isWoken && !isClosed) {
        isWoken = false
        clearTimeout(timer)
        await look()
      }
    })()
      .catch(error => {
        runtimeOf().log(`sandboxes of E2B's clients: ${messageOf(error)}`, 'error')
        timer = setTimeout(wake, FAILED_MS)
        timer.unref()
      })
      .finally(() => {
        looking = undefined
        if (isWoken) wake()
      })
  }

  return {
    wake,
    inTurn,
    watch(sandboxId, onCut) {
      const calls = watching.get(sandboxId) ?? new Set()
      watching.set(sandboxId, calls.add(onCut))
      return {
        [Symbol.dispose]() {
          calls.delete(onCut)
          if (calls.size === 0 && watching.get(sandboxId) === calls) watching.delete(sandboxId)
        },
      }
    },
    cut(sandboxId) {
      const calls = watching.get(sandboxId)
      watching.delete(sandboxId)
      for (const call of calls ?? []) call()
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      await looking
    },
  }
}

/** Ends a sandbox whose time is up in the way that its client chose. A sandbox that has got more time by now goes on. */
async function endE2bSandbox(runtime: Runtime, sandboxId: string): Promise<void> {
  const { db, e2b } = runtime
  await e2b.inTurn(sandboxId, async () => {
    const each = findE2bSandbox(db, sandboxId)
    const sandbox = findSandboxById(db, sandboxId)
    if (!each || !sandbox || each.pausedAt !== undefined || each.endsAt > new Date().toISOString()) return
    if (each.onEnd === 'pause') return await pause(runtime, sandbox, each)
    e2b.cut(sandboxId)
    await removeSandbox(runtime, sandbox)
  })
}

/** Pauses a sandbox: its open work is cut off, its processes end, and its files stay. Call it in the sandbox's turn. */
export async function pause(runtime: Runtime, sandbox: Sandbox, each: E2bSandbox): Promise<void> {
  const { db, environments, e2b } = runtime
  const store = (row: E2bSandbox) => writeWhenFree(db, () => saveE2bSandbox(db, row))
  // The pause is stored first, so that nothing new begins there.
  await store({ ...each, pausedAt: new Date().toISOString() })
  try {
    e2b.cut(sandbox.id)
    const environment = await environments.get(sandbox)
    await environment.pause?.()
    await lasting(db)
  } catch (error) {
    await store(each)
    throw error
  }
}
