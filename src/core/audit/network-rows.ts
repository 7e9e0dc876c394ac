import type { AuditFact } from '../../model/audit.ts'
import type { Observation } from '../../model/observation.ts'

/** Observations of a sandbox's proxy. */
type NetworkObservation = Extract<Observation, { type: 'network.decided' | 'secret.used' }>

/** Finds the sandbox of an environment; undefined when it has none yet, or no longer. */
export type FindSandbox = (environmentId: string) => { id: string; teamId: string } | undefined

const MINUTE_MS = 60_000
/**
 * How many rows of decisions, and as many of uses, one environment may add in a minute: a program that asks without end must not
 * fill the disk.
 */
const MAX_ROWS = 200

interface Minute {
  environmentId: string
  /** The action of the row that counts the others. */
  action: string
  seen: Set<string>
  more: Record<string, number>
}

/**
 * Makes rows of the proxy's decisions and of uses of secrets: one for the first of its kind in a minute, then one that counts the
 * rest.
 */
export interface NetworkRows {
  add(observation: NetworkObservation): void
  close(): void
}

export function createNetworkRows(findSandbox: FindSandbox, record: (row: AuditFact) => void): NetworkRows {
  let minutes = new Map<string, Minute>()
  let timer: Timer | undefined

  const about = (environmentId: string) => {
    const sandbox = findSandbox(environmentId)
    const target = { environmentId, ...(sandbox && { sandboxId: sandbox.id }) }
    return { ...(sandbox && { teamId: sandbox.teamId }), actor: {}, target }
  }
  const end = () => {
    clearTimeout(timer)
    timer = undefined
    for (const { environmentId, action, more } of minutes.values()) {
      if (Object.values(more).every(count => count === 0)) continue
      record({ ...about(environmentId), action, outcome: 'counted', detail: { ...more } })
    }
    minutes = new Map()
  }

  return {
    add(observation) {
      const { time, environmentId } = observation
      const { action, outcome, detail } = rowOf(observation)
      timer ??= setTimeout(end, MINUTE_MS).unref()
      const key = `${action} ${environmentId}`
      const minute = minutes.get(key) ?? newMinute(environmentId, action)
      minutes.set(key, minute)
      const kind = JSON.stringify([action, outcome, detail])
      if (minute.seen.has(kind) || minute.seen.size >= MAX_ROWS) {
        minute.more[outcome] = (minute.more[outcome] ?? 0) + 1
        return
      }
      minute.seen.add(kind)
      record({ time, ...about(environmentId), action, outcome, detail })
    },
    close: end,
  }
}

const newMinute = (environmentId: string, action: NetworkObservation['type']): Minute =>
  action === 'secret.used'
    ? { environmentId, action: 'secret.more', seen: new Set(), more: { used: 0 } }
    : { environmentId, action: 'network.more', seen: new Set(), more: { allowed: 0, refused: 0 } }

/** The path is cut because a program inside chooses it. */
const MAX_PATH_CHARS = 1000

function rowOf(observation: NetworkObservation) {
  const { type: action, host, port } = observation
  if (action === 'secret.used') {
    const { name, method, path } = observation
    return {
      action,
      outcome: 'used',
      detail: { name, host, port, method, path: path.slice(0, MAX_PATH_CHARS) },
    } as const
  }
  const outcome = observation.isAllowed ? 'allowed' : 'refused'
  return { action, outcome, detail: { host, port, reason: observation.reason } } as const
}
