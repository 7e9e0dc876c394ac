import type { Decision } from '../../egress/decision-log.ts'
import { findLastingDenial } from '../../egress/policy.ts'
import type { NetworkRules, Sandbox } from '../../model/sandbox.ts'
import type { Runtime } from '../runtime.ts'
import { layersOf } from './networks.ts'

/** A decision, and what would have to change beside the sandbox's own lists. */
export interface ShownDecision extends Decision {
  /** Of a refusal: why its host and port on the sandbox's own list would not let it out. Absent when that is enough. */
  obstacle?: string
}

/** What was decided about the connections of a sandbox, the latest first. */
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

/** A sandbox's own lists when a target is allowed by its name and port, a name by itself, and no longer refused by them. */
function withTarget({ allowOut, denyOut = [] }: NetworkRules, { host, port, isName }: Decision): NetworkRules {
  const rule = isName ? host : host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  return { ...(allowOut && { allowOut: [...allowOut, rule] }), denyOut: denyOut.filter(text => text !== rule) }
}
