import type { AuditFact } from '../../model/audit.ts'
import type { Observation } from '../../model/observation.ts'
import type { Observers } from '../observe/observers.ts'
import type { AuditLog } from './audit-log.ts'
import { createNetworkRows, type FindSandbox } from './network-rows.ts'
import { createRequestRows } from './request-rows.ts'

/** Records in the audit log what is observed in sandboxes and which requests are sent. */
export function keepObservations(observers: Observers, audit: AuditLog, findSandbox: FindSandbox): Disposable {
  const requests = createRequestRows(row => audit.record(row))
  const network = createNetworkRows(findSandbox, row => audit.record(row))
  const subscription = observers.subscribe(observation => {
    if (observation.type === 'network.decided' || observation.type === 'secret.used') return network.add(observation)
    if (observation.type === 'request.ended') {
      return requests.ended(observation, audit.takeKept(observation.cause.requestId))
    }
    const row = rowOf(observation)
    if (row) audit.record(observation.type === 'exec.ended' ? withBegin(audit, row) : row)
  })
  return {
    [Symbol.dispose]() {
      subscription[Symbol.dispose]()
      network.close()
      requests.close()
    },
  }
}

/** A command that ends before the row of its begin is written gets one row for both. */
function withBegin(audit: AuditLog, ended: AuditFact): AuditFact {
  const { execId } = ended.target
  const begun = audit.takeBack(({ action, target }) => action === 'exec.started' && target.execId === execId)
  return begun ? { ...ended, detail: { ...begun.detail, startedAt: begun.time, ...ended.detail } } : ended
}

/** Makes the audit row of an observation. Returns undefined when the log does not keep this kind. */
function rowOf(observation: Observation): AuditFact | undefined {
  const placed = (of: { time: string; teamId: string; sandboxId: string; cause?: object }) => ({
    time: of.time,
    teamId: of.teamId,
    actor: { ...of.cause },
  })
  switch (observation.type) {
    case 'exec.started': {
      const { sandboxId, execId, runId, commandSha256 } = observation
      const target = { sandboxId, execId, runId }
      return { ...placed(observation), action: 'exec.started', target, outcome: 'begun', detail: { commandSha256 } }
    }
    case 'exec.ended': {
      const { sandboxId, execId, runId, outcome, exitCode, durationMs } = observation
      const target = { sandboxId, execId, runId }
      const detail = { exitCode, durationMs: Math.round(durationMs) }
      return { ...placed(observation), action: 'exec.ended', target, outcome, detail }
    }
    case 'process.started': {
      const { sandboxId, pid, commandSha256 } = observation
      const target = { sandboxId, pid }
      return { ...placed(observation), action: 'process.started', target, outcome: 'done', detail: { commandSha256 } }
    }
    case 'file.changed': {
      const { sandboxId, runId, how, path, toPath, sizeBytes, outcome } = observation
      const target = { sandboxId, runId, path, toPath }
      const detail = sizeBytes === undefined ? undefined : { sizeBytes }
      return { ...placed(observation), action: `file.${how}`, target, outcome, ...(detail && { detail }) }
    }
    case 'repository.cloned': {
      const { sandboxId, path, host, outcome } = observation
      return { ...placed(observation), action: 'file.clone', target: { sandboxId, path }, outcome, detail: { host } }
    }
    case 'run.started': {
      const { sandboxId, threadId, runId, agentSlug, engine, model } = observation
      const target = { sandboxId, threadId, runId, agent: agentSlug }
      return { ...placed(observation), action: 'run.started', target, outcome: 'begun', detail: { engine, model } }
    }
    case 'run.ended': {
      const { sandboxId, threadId, runId, agentSlug, status } = observation
      const target = { sandboxId, threadId, runId, agent: agentSlug }
      return { ...placed(observation), action: 'run.ended', target, outcome: status }
    }
    case 'model-call.ended': {
      const { sandboxId, threadId, runId, keyId, provider, model, status, startedAt: _ } = observation
      const target = { sandboxId, threadId, runId }
      const actor = keyId === undefined ? {} : { keyId }
      const about = { ...placed(observation), actor, action: 'model.called', target }
      return { ...about, outcome: status, detail: { provider, model } }
    }
    case 'sandbox.created': {
      const { sandboxId, agentSlug, backend, secrets } = observation
      const target = { sandboxId, agent: agentSlug }
      return {
        ...placed(observation),
        action: 'sandbox.created',
        target,
        outcome: 'done',
        detail: { backend, secrets },
      }
    }
    case 'sandbox.failed': {
      const { time, teamId, cause, backend, code } = observation
      return {
        time,
        teamId,
        actor: { ...cause },
        action: 'sandbox.created',
        target: {},
        outcome: 'failed',
        detail: { backend, code },
      }
    }
    case 'sandbox.stopped':
    case 'sandbox.deleted':
      return {
        ...placed(observation),
        action: observation.type,
        target: { sandboxId: observation.sandboxId },
        outcome: 'done',
      }
    default:
      return undefined
  }
}
