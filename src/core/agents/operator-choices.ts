import type { AgentDefinition, AgentSandbox } from '../../model/agent.ts'

/** Keeps what new sandboxes of an agent start from, on each backend that asks for it. */
export const pickStart = ({
  base,
  image,
  template,
}: AgentSandbox): Pick<AgentSandbox, 'base' | 'image' | 'template'> => ({
  ...(base !== undefined && { base }),
  ...(image !== undefined && { image }),
  ...(template !== undefined && { template }),
})

/** A version of an agent with what the operator alone may decide, as the agent has it now. */
export function withOperatorChoices<Version extends AgentDefinition>(
  version: Version,
  current: AgentDefinition,
): Version {
  const { base: _, image: __, template: ___, ...sandbox } = version.sandbox
  const { maxAgentBudgetUsd: ____, ...options } = version.options
  const { maxAgentBudgetUsd } = current.options
  return {
    ...version,
    sandbox: { ...sandbox, ...pickStart(current.sandbox) },
    options: { ...options, ...(maxAgentBudgetUsd !== undefined && { maxAgentBudgetUsd }) },
  }
}
