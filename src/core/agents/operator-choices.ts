import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../errors.ts'
import type { AgentDefinition, AgentSandbox } from '../../model/agent.ts'
import { isAtLeast, strongestOf } from '../../model/isolation.ts'
import type { Limits } from '../../plugin-api/index.ts'

/** Keeps what new sandboxes of an agent start from, on each backend that asks for it. */
export const pickStart = ({
  base,
  image,
  runtime,
  template,
}: AgentSandbox): Pick<AgentSandbox, 'base' | 'image' | 'runtime' | 'template'> => ({
  ...(base !== undefined && { base }),
  ...(image !== undefined && { image }),
  ...(runtime !== undefined && { runtime }),
  ...(template !== undefined && { template }),
})

/**
 * Returns a version of an agent with the settings that only the operator may decide as the agent has them now, and with isolation
 * that is at least the agent's.
 */
export function withOperatorChoices<Version extends AgentDefinition>(
  version: Version,
  current: AgentDefinition,
): Version {
  const { base: _, image: __, runtime: ______, template: ___, ...sandbox } = version.sandbox
  const { maxAgentBudgetUsd: ____, acp: _____, ...options } = version.options
  const { maxAgentBudgetUsd, acp } = current.options
  const isolation = strongestOf(sandbox.isolation, current.sandbox.isolation)
  return {
    ...version,
    sandbox: { ...sandbox, ...pickStart(current.sandbox), ...(isolation && { isolation }) },
    options: { ...options, ...(maxAgentBudgetUsd !== undefined && { maxAgentBudgetUsd }), ...(acp && { acp }) },
  }
}

/**
 * Returns a team's change of an agent with the operator's settings filled in where the change leaves them out. Throws forbidden
 * when it changes one of them or the program of `acp`, weakens the isolation, or sets a limit above the server's.
 */
export function withinOperatorChoices<Change extends AgentDefinition>(
  change: Change,
  current: AgentDefinition,
  most: Limits,
): Change {
  const { sandbox, options } = change
  for (const name of ['base', 'image', 'runtime', 'template'] as const)
    assertKept(`sandbox.${name}`, sandbox[name], current.sandbox[name])
  for (const name of ['maxAgentBudgetUsd', 'acp'] as const)
    assertKept(`options.${name}`, options[name], current.options[name])
  const { isolation: least } = current.sandbox
  if (sandbox.isolation && least && !isAtLeast(sandbox.isolation, least)) {
    const field = 'sandbox.isolation'
    throw new ApiError('forbidden', `${field}: only the operator may weaken it, by threadbox agents apply`, { field })
  }
  assertLimitsWithin(sandbox.limits, current.sandbox.limits, most)
  return withOperatorChoices(change, current)
}

function assertKept(field: string, asked: unknown, now: unknown): void {
  if (asked === undefined || isDeepStrictEqual(asked, now)) return
  throw new ApiError('forbidden', `${field}: only the operator may change this, by threadbox agents apply`, { field })
}

/** A limit above the server's may stay unchanged: where the agent was deployed, the server's own limit holds anyway. */
function assertLimitsWithin(asked: Limits, now: Limits, most: Limits): void {
  for (const name of Object.keys(asked) as (keyof Limits)[]) {
    const [limit, bound] = [asked[name], most[name]]
    if (!bound || limit === now[name] || (limit && limit <= bound)) continue
    const field = `sandbox.limits.${name}`
    throw new ApiError('forbidden', `${field}: the server gives a sandbox no more than ${bound}`, { field })
  }
}
