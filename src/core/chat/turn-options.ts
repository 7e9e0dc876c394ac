import type { RunBudgets } from '../../gateway/budgets.ts'
import type { AgentOptions } from '../../model/agent.ts'
import type { TurnOptions } from '../../plugin-api/index.ts'

/** What a chat asks for, beside its messages. */
export interface ChatOptions {
  model?: string
  systemPrompt?: string
  maxTurns?: number
  maxBudgetUsd?: number
  maxSandboxBudgetUsd?: number
  permissionMode?: string
  disallowedTools?: string[]
}

/** From what lets the agent do least. */
const modes = ['plan', 'default', 'acceptEdits', 'bypassPermissions']

/** The options of one turn. A chat may have less of what its agent allows, never more. */
export function limitToAgent(
  agent: AgentOptions,
  chat: ChatOptions,
): { turnOptions: TurnOptions; budgets: RunBudgets } {
  const maxTurns = least(agent.maxTurns, chat.maxTurns)
  const permissionMode = strictest(agent.permissionMode, chat.permissionMode)
  const disallowedTools = [...new Set([...(agent.disallowedTools ?? []), ...(chat.disallowedTools ?? [])])]
  const maxBudgetUsd = least(agent.maxBudgetUsd, chat.maxBudgetUsd)
  const maxSandboxBudgetUsd = least(agent.maxSandboxBudgetUsd, chat.maxSandboxBudgetUsd)
  const { maxAgentBudgetUsd, mcpServers, acp } = agent
  return {
    turnOptions: {
      ...(maxTurns !== undefined && { maxTurns }),
      ...(permissionMode !== undefined && { permissionMode }),
      ...(disallowedTools.length > 0 && { disallowedTools }),
      ...(mcpServers && { mcpServers }),
      ...(acp && { acp }),
    },
    budgets: {
      ...(maxBudgetUsd !== undefined && { maxBudgetUsd }),
      ...(maxSandboxBudgetUsd !== undefined && { maxSandboxBudgetUsd }),
      ...(maxAgentBudgetUsd !== undefined && { maxAgentBudgetUsd }),
    },
  }
}

const least = (first: number | undefined, second: number | undefined): number | undefined =>
  first === undefined || second === undefined ? (first ?? second) : Math.min(first, second)

/** A mode that is not known here cannot be compared: the agent's stays. */
function strictest(agent: string | undefined, chat: string | undefined): string | undefined {
  if (agent === undefined || chat === undefined) return agent ?? chat
  const [allowed, asked] = [modes.indexOf(agent), modes.indexOf(chat)]
  return asked >= 0 && asked < allowed ? chat : agent
}
