import type { Agent } from '../../model/agent.ts'
import type { Limits } from '../../plugin-api/index.ts'
import { pickStart } from '../agents/operator-choices.ts'
import type { Config } from '../config.ts'
import type { EnvironmentStart } from '../runtime.ts'

/** The settings of a new environment of an agent; without an agent, those of the configuration alone. */
export function toStart(
  { backend, isolation, limits: most }: Pick<Config, 'backend' | 'limits'> & Pick<EnvironmentStart, 'isolation'>,
  agent?: Pick<Agent, 'sandbox' | 'deploymentId' | 'operatorLimits'>,
): EnvironmentStart {
  if (!agent) return { backend, limits: withoutZeroLimits(most) }
  const { sandbox, deploymentId, operatorLimits = {} } = agent
  const own = deploymentId === undefined ? sandbox.limits : capLimits(sandbox.limits, most, operatorLimits)
  const limits = withoutZeroLimits({ ...most, ...own })
  return { backend, limits, ...pickStart(sandbox), ...(isolation && { isolation }) }
}

/**
 * Keeps a version's limits within those that the operator gives every sandbox, or gave this agent. In a version zero does not
 * mean no limit: it means the operator's limit.
 */
const capLimits = (asked: Limits, most: Limits, own: Limits): Limits =>
  Object.fromEntries(
    Object.entries(asked).map(([name, limit]) => {
      const bound = own[name as keyof Limits] === limit ? undefined : most[name as keyof Limits]
      return [name, bound ? Math.min(limit || bound, bound) : limit]
    }),
  )

/** Zero is no limit. */
export const withoutZeroLimits = (limits: Limits): Limits =>
  Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit > 0))
