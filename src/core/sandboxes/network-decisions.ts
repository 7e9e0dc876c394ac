import type { Decision } from '../../egress/decision-log.ts'
import { findLastingDenial } from '../../egress/policy.ts'
import type { NetworkRules, Sandbox } from '../../model/sandbox.ts'
import type { Runtime } from '../runtime.ts'
import { layersOf } from './networks.ts'

/** A decision about a connection, and what besides the sandbox's own lists stands in its way. */
export interface ShownDecision extends Decision {
  /** For a refusal: why the sandbox's own list cannot allow this host and port. Absent when an entry there is enough. */
  obstacle?: string
}

/** Lists the decisions about a sandbox's connections, latest first. */
export function listDecisions(runtime: Runtime, sandbox: Sandbox): ShownDecision[] {
  return runtime.egress.decisions(sandbox.environmentId).map(decision => {
    const obstacle = decision.isAllowed ? undefined : findObstacle(runtime, sandbox, decision)
    return { ...decision, ...(obstacle !== undefined && { obstacle }) }
  })
}

function findObstacle({ config }: Runtime, { network }: Sandbox, decision: Decision): string | undefined {
  const { agent, own = {} } = network
  const denialBy = (rules: readonly NetworkRules[]) =>
    findLastingDenial({ mode: config.network, ceiling: config.networkPrivate, layers: layersOf(rules) }, decision)
  const byAgent = agent && denialBy([agent])
  if (byAgent !== undefined) return `the rules of its agent refuse it: ${byAgent}`
  return denialBy([...(agent ? [agent] : []), withTarget(own, decision)])
}

/** A sandbox's own lists with a target allowed (by name and port, or by the name alone) and no longer denied. */
function withTarget({ allowOut, denyOut = [] }: NetworkRules, { host, port, isName }: Decision): NetworkRules {
  const rule = isName ? host : host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  return { ...(allowOut && { allowOut: [...allowOut, rule] }), denyOut: denyOut.filter(text => text !== rule) }
}
