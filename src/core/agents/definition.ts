import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { agentEnv } from '../../db/agents.ts'
import { findDeployment } from '../../db/deployments.ts'
import { inTransaction } from '../../db/open.ts'
import { ApiError } from '../../errors.ts'
import type { Agent, AgentDefinition } from '../../model/agent.ts'
import type { JsonObject } from '../../read/json.ts'
import type { Caller } from '../access/caller.ts'
import { keepChange } from '../access/keep-change.ts'
import type { Runtime } from '../runtime.ts'
import { assertMayChangeBindings } from '../secrets/bind.ts'
import { readSentAgent } from './agent-files.ts'
import { logAgent } from './agent-log.ts'
import { getVersionedAgent } from './agents.ts'
import { withinOperatorChoices } from './operator-choices.ts'
import { shownDefinition, withKeptSecrets } from './shown-definition.ts'
import { definitionOf, filesOf, grantedLimits, saveVersion } from './versions.ts'

/** An agent's definition, as it is now or as it was at one of its versions. */
export interface ShownAgent {
  slug: string
  /** Null for an agent without versions. */
  version: number | null
  /** Identifies the agent's present state, whichever version is shown. It changes with every visible change of the agent. */
  revision: string
  /** As an agent file, with null in the place of each secret. */
  definition: JsonObject
  /** The names of the variables of new sandboxes, beside those of the definition. */
  variables: string[]
}

/** A new definition of an agent, sent by a caller who has read the agent at `revision`. */
export interface AgentChange {
  revision: string
  definition: JsonObject
}

/** Throws agent_not_found, not_found for a version that is not there, and forbidden for a token. */
export function showAgent(runtime: Runtime, caller: Caller, slug: string, version?: number): ShownAgent {
  const { db } = runtime
  const { agent, deployments, active } = getVersionedAgent(runtime, caller, slug)
  const chosen = deployments.find(each => each.version === version)
  const stored = chosen && findDeployment(db, chosen.id)
  if (version !== undefined && !stored) throw new ApiError('not_found', `${slug} has no version ${version}.`)
  return {
    slug,
    version: version ?? active?.version ?? null,
    revision: revisionOf(agent),
    definition: shownDefinition(slug, stored?.definition ?? agent),
    variables: Object.keys(agentEnv(db, agent.id)).sort(),
  }
}

/**
 * Gives an agent the definition that a caller wants. That makes a new version, unless the agent has this definition already.
 * Throws conflict when the agent has another revision by now, invalid_request that names each wrong field, and forbidden for what
 * only the operator may change.
 */
export function editAgent(runtime: Runtime, caller: Caller, slug: string, change: AgentChange): ShownAgent {
  const { db, engines, config } = runtime
  return inTransaction(db, () => {
    const { agent, active } = getVersionedAgent(runtime, caller, slug)
    if (change.revision !== revisionOf(agent)) {
      throw new ApiError('conflict', `${slug} was changed meanwhile: read it again.`)
    }
    const { slug: named = slug, ...definition } = change.definition
    if (named !== slug) throw new ApiError('invalid_request', 'slug: an agent keeps its slug', { field: 'slug' })
    const sent = readSentAgent({ slug, ...withKeptSecrets(definition, agent) }, [...engines.keys()])
    const wanted = withinOperatorChoices(sent, agent, config.limits)
    const fields = changedFields(definitionOf(agent), definitionOf(wanted))
    if (fields.length > 0) {
      assertMayChangeBindings(caller, agent.secrets, wanted.secrets)
      runtime.teamLimits.assertRoom(caller.teamId, 'versions')
      const input = { ...wanted, ...grantedLimits(agent) }
      const { version, agentId } = saveVersion(db, caller.teamId, input, { ...filesOf(active), madeBy: 'edit' })
      const text = `${slug} is at version ${version}, by an edit of ${fields.join(', ')}.`
      logAgent(db, agentId, { source: 'deploy', level: 'info', text })
      keepChange(runtime, caller, {
        action: 'agent.edited',
        target: { agentId, agent: slug },
        detail: { version, fields },
      })
    }
    return showAgent(runtime, caller, slug)
  })
}

/** Agents that are shown alike have the same revision, because an edit keeps a secret that was changed meanwhile. */
const revisionOf = (agent: Agent): string =>
  createHash('sha256')
    .update(JSON.stringify([agent.deploymentId ?? null, shownDefinition(agent.slug, agent)]))
    .digest('base64url')
    .slice(0, 22)

/** Lists the names of what differs, down to single options and settings of the sandbox. */
const changedFields = (was: AgentDefinition, is: AgentDefinition): string[] => [
  ...differing({ ...was, options: 0, sandbox: 0 }, { ...is, options: 0, sandbox: 0 }),
  ...differing(was.options, is.options).map(name => `options.${name}`),
  ...differing(was.sandbox, is.sandbox).map(name => `sandbox.${name}`),
]

function differing(was: object, is: object): string[] {
  const [before, after] = [new Map(Object.entries(was)), new Map(Object.entries(is))]
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].filter(name => !isDeepStrictEqual(before.get(name), after.get(name)))
}
