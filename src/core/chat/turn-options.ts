import type { RunBudgets } from '../../gateway/budgets.ts'
import type { AgentOptions } from '../../model/agent.ts'
import type { ClientTool, TurnOptions } from '../../plugin-api/index.ts'
import type { StreamProfile } from '../../stream/project.ts'
import type { RuleOptions } from '../permissions/decide.ts'

/** What a chat asks for, beside its messages. */
export interface ChatOptions {
  model?: string
  systemPrompt?: string
  maxTurns?: number
  maxBudgetUsd?: number
  maxSandboxBudgetUsd?: number
  permissionMode?: string
  disallowedTools?: string[]
  allow?: string[]
  ask?: string[]
  deny?: string[]
  stream?: StreamProfile
  /** Tools that the client executes, beside those that the agent names. */
  clientTools?: Record<string, ClientTool>
}

/** From what lets the agent do least. */
const modes = ['plan', 'default', 'acceptEdits', 'bypassPermissions']

/** What one turn may do. */
export interface TurnBounds {
  turnOptions: TurnOptions
  budgets: RunBudgets
  /** What the chat says of its calls, beside what the agent says. */
  chatRules: RuleOptions
  clientTools: Readonly<Record<string, ClientTool>>
  profile: StreamProfile
}

/** The options of one turn. A chat may have less of what its agent allows, never more. */
export function limitToAgent(agent: AgentOptions, chat: ChatOptions): TurnBounds {
  const maxTurns = least(agent.maxTurns, chat.maxTurns)
  const permissionMode = strictest(agent.permissionMode, chat.permissionMode)
  const disallowedTools = [...new Set([...(agent.disallowedTools ?? []), ...(chat.disallowedTools ?? [])])]
  const deny = [...new Set([...(agent.deny ?? []), ...(chat.deny ?? [])])]
  const { permissionMode: chatMode, allow, ask, deny: chatDeny } = chat
  const maxBudgetUsd = least(agent.maxBudgetUsd, chat.maxBudgetUsd)
  const maxSandboxBudgetUsd = least(agent.maxSandboxBudgetUsd, chat.maxSandboxBudgetUsd)
  const { maxAgentBudgetUsd, mcpServers, acp } = agent
  return {
    turnOptions: {
      ...(maxTurns !== undefined && { maxTurns }),
      ...(permissionMode !== undefined && { permissionMode }),
      ...(disallowedTools.length > 0 && { disallowedTools }),
      ...(deny.length > 0 && { deny }),
      ...(agent.allow && { allow: agent.allow }),
      ...(mcpServers && { mcpServers }),
      ...(acp && { acp }),
    },
    budgets: {
      ...(maxBudgetUsd !== undefined && { maxBudgetUsd }),
      ...(maxSandboxBudgetUsd !== undefined && { maxSandboxBudgetUsd }),
      ...(maxAgentBudgetUsd !== undefined && { maxAgentBudgetUsd }),
    },
    chatRules: {
      ...(chatMode !== undefined && { permissionMode: chatMode }),
      ...(chat.disallowedTools && { disallowedTools: chat.disallowedTools }),
      ...(allow && { allow }),
      ...(ask && { ask }),
      ...(chatDeny && { deny: chatDeny }),
    },
    clientTools: { ...agent.clientTools, ...chat.clientTools },
    profile: chat.stream ?? agent.stream ?? 'contract',
  }
}

/**
 * The options of a run that goes on: those of the chat that asked, with what the one that answers has besides. It may be
 * stricter, and its client may read another profile; what binds the run stays.
 */
export function strictestOptions(asked: ChatOptions, answering: ChatOptions = {}): ChatOptions {
  const numbers = (['maxTurns', 'maxBudgetUsd', 'maxSandboxBudgetUsd'] as const).flatMap(name => {
    const value = least(asked[name], answering[name])
    return value === undefined ? [] : [[name, value]]
  })
  const lists = (['disallowedTools', 'ask', 'deny'] as const).flatMap(name => {
    const both = [...new Set([...(asked[name] ?? []), ...(answering[name] ?? [])])]
    return both.length > 0 ? [[name, both]] : []
  })
  const permissionMode = strictest(asked.permissionMode, answering.permissionMode)
  return {
    ...answering,
    ...asked,
    ...Object.fromEntries([...numbers, ...lists]),
    ...(permissionMode !== undefined && { permissionMode }),
    ...(answering.stream && { stream: answering.stream }),
    ...(answering.clientTools && { clientTools: { ...answering.clientTools, ...asked.clientTools } }),
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
