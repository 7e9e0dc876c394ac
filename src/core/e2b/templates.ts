import { findAgent, listAgents } from '../../db/agents.ts'
import { findSnapshot } from '../../db/snapshots.ts'
import { ApiError } from '../../errors.ts'
import type { Agent } from '../../model/agent.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'

/** What a new sandbox of a template is made of. */
export type TemplateStart = { agent: string; base?: string } | { snapshot: string }

/** E2B's own template that contains nothing. Here it stands for the base of new sandboxes. */
const PLAIN = 'base'
/** The agent of sandboxes without a template of their own: every team has it, and it needs no model. */
const PLAIN_AGENT = 'echo'

/** Cuts E2B's team prefix and tag from a name: this server has neither. */
export const nameOfTemplate = (template: string): string => template.replace(/^[\w-]+\//, '').replace(/:default$/, '')

/** A template is an agent of the team, `base`, a base that was added here, or a snapshot. Throws not_found. */
export async function findTemplate(runtime: Runtime, { teamId }: Caller, template: string): Promise<TemplateStart> {
  const { db, config, backends } = runtime
  const name = nameOfTemplate(template)
  if (findAgent(db, teamId, name)) return { agent: name }
  if (name === PLAIN && findAgent(db, teamId, PLAIN_AGENT)) return { agent: PLAIN_AGENT }
  const bases = (await backends.get(config.backend)?.listBases?.()) ?? []
  if (bases.includes(name) && findAgent(db, teamId, PLAIN_AGENT)) return { agent: PLAIN_AGENT, base: name }
  const snapshot = findSnapshot(db, teamId, name)
  if (snapshot) return { snapshot: snapshot.id }
  throw new ApiError('not_found', `template '${name}' not found`)
}

/** Lists the agents of a caller's team. */
export const listTemplateAgents = ({ db }: Runtime, { teamId }: Caller): Agent[] => listAgents(db, teamId)
