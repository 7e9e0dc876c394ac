import type { Permission, Permissions } from '../../plugin-api/index.ts'
import { allowsAgain } from './narrow-rule.ts'
import { type Place, resolveIn } from './path-rule.ts'
import { type Call, findAllowing, findMatching, parseRule, type Rule, readCall } from './rule.ts'
import { isEditTool, isReadOnlyTool } from './tool-names.ts'

/** What an agent says of its calls, or a chat. */
export interface RuleOptions {
  /** One of Claude Code's. */
  permissionMode?: string
  allow?: readonly string[]
  ask?: readonly string[]
  deny?: readonly string[]
  disallowedTools?: readonly string[]
}

export interface PermissionsInit {
  agent: RuleOptions
  /** It can only be stricter: what it allows, its agent must allow as well. */
  chat: RuleOptions
  /** Whether the agent waits for a person (`approvals`). */
  asks: boolean
  /** Whether the turn's engine can wait for one. */
  canAsk: boolean
  place: Place
  /** Rules that a person has approved for good. They answer what asks, and allow nothing that is denied. */
  remembered?: readonly string[]
  /** The names of the tools that the client executes. They ask by rules alone: it is the client's to ask for more. */
  clientTools?: readonly string[]
}

interface Side {
  mode: string
  allow: readonly Rule[]
  ask: readonly Rule[]
  deny: readonly Rule[]
}

interface Verdict extends Permission {
  /** Whether a rule asks, and not the mode. */
  isByRule?: boolean
}

/** From what lets the engine do most. */
const order = ['allow', 'ask', 'deny']

/** Decides by the rules and modes of an agent and a chat: the stricter of the two holds. Throws for a malformed rule. */
export function createPermissions(init: PermissionsInit): Permissions {
  const { place, asks, canAsk } = init
  const agent = toSide(init.agent, asks ? 'default' : 'bypassPermissions')
  const chat = toSide(init.chat, 'bypassPermissions')
  const remembered = (init.remembered ?? []).map(parseRule)
  // Each was approved for what it says: what two of them make together was not.
  const isRemembered = (call: Call) => remembered.some(rule => allowsAgain(rule, call))
  const ofClient = new Set(init.clientTools)

  function judge(side: Side, call: Call, isReadOnly: boolean): Permission {
    const verdict = decideBy(side, call, isReadOnly)
    if (verdict.decision !== 'ask' || (asks && canAsk)) return verdict
    if (asks) return { decision: 'deny', reason: `${verdict.reason} The agent's engine cannot wait for an approval.` }
    if (!verdict.isByRule || findAllowing(agent.allow, call)) return { decision: 'allow' }
    return { decision: 'deny', reason: `${verdict.reason} The agent waits for no approvals.` }
  }

  const isPlain = ({ mode, ask, deny }: Side) =>
    ask.length === 0 &&
    deny.every(({ isOne }) => isOne === true) &&
    (!asks || mode === 'bypassPermissions' || mode === 'plan')

  return {
    byOptionsAlone: isPlain(agent) && isPlain(chat),
    decide(name, input, facts = {}) {
      const call = readCall(name, input, place)
      const isReadOnly = facts.isReadOnly === true || ofClient.has(name) || isReadOnlyTool(name)
      const [first, second] = [judge(agent, call, isReadOnly), judge(chat, call, isReadOnly)]
      const { decision, reason } = order.indexOf(second.decision) > order.indexOf(first.decision) ? second : first
      if (decision === 'ask' && isRemembered(call)) return { decision: 'allow' }
      return { decision, ...(reason !== undefined && { reason }) }
    },
  }
}

function toSide({ permissionMode, allow = [], ask = [], deny = [], disallowedTools = [] }: RuleOptions, mode: string) {
  // A rule for some inputs takes away the whole tool there, and a name may be anything.
  const names = disallowedTools.map(text => (text.split('(', 1)[0] ?? '').trim().replace(/__\*$/, ''))
  return {
    mode: permissionMode ?? mode,
    allow: allow.map(parseRule),
    ask: ask.map(parseRule),
    deny: [...names.map(tool => ({ text: tool, tool, isOne: true })), ...deny.map(parseRule)],
  }
}

/** Rules come before the mode, and the stricter rule before the other. */
function decideBy({ mode, allow, ask, deny }: Side, call: Call, isReadOnly: boolean): Verdict {
  const denying = findMatching(deny, call)
  if (denying) return { decision: 'deny', reason: `The rule ${denying.text} denies this call of ${call.name}.` }
  const asking = findMatching(ask, call)
  if (asking) {
    return { decision: 'ask', isByRule: true, reason: `The rule ${asking.text} asks before this call of ${call.name}.` }
  }
  if (isReadOnly || mode === 'bypassPermissions' || findAllowing(allow, call)) return { decision: 'allow' }
  if (mode === 'plan') return { decision: 'deny', reason: `${call.name} may change something, and the mode is plan.` }
  if (mode === 'acceptEdits' && isEditWithin(call)) return { decision: 'allow' }
  return { decision: 'ask', reason: `The mode ${mode} asks before ${call.name}.` }
}

function isEditWithin({ name, input, place }: Call): boolean {
  if (!isEditTool(name)) return false
  const paths = [input.file_path, input.notebook_path, input.path].filter(path => path !== undefined)
  const cwd = place.cwd.replace(/\/?$/, '/')
  return paths.length > 0 && paths.every(path => typeof path === 'string' && resolveIn(place, path).startsWith(cwd))
}
