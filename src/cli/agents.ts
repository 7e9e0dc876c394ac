import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_TEAM, ensureTeamWithEcho } from '../core/access/teams.ts'
import { readAgentFiles } from '../core/agents/agent-files.ts'
import { applyAgent } from '../core/agents/versions.ts'
import type { Config } from '../core/config.ts'
import { findAgent, listAgents, removeAgent } from '../db/agents.ts'
import { findEngines } from '../db/backends.ts'
import { inTransaction } from '../db/open.ts'
import { openData } from '../start/data.ts'
import { loadPlugins } from '../start/load-plugins.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { deploy } from './deploy.ts'
import { keepCommand } from './keep-command.ts'
import { printList } from './list.ts'

/** Works beside a running server, which sees the change at once; a deploy goes through it. */
export async function agents(given: Given): Promise<void> {
  const { action } = given
  if (action === 'deploy') return await deploy(given)
  const [subject = ''] = given.words
  const { config, tellIfUnused } = await readPlace(given)
  const { dataDirectory } = config
  // Before the database is opened, so that a mistake changes nothing.
  const inputs = action === 'apply' ? await readAgentFiles(subject, await listEngines(config)) : []
  const db = await openData(dataDirectory)
  const { id: teamId } = ensureTeamWithEcho(db, given.find('team') ?? DEFAULT_TEAM)
  if (action === 'apply') {
    for (const input of inputs) {
      inTransaction(db, () => {
        applyAgent(db, teamId, input)
        keepCommand(db, 'agents apply', { teamId, action: 'agent.applied', target: { agent: input.slug } })
      })
      if (!given.has('quiet')) console.log(`${input.slug} is applied in ${dataDirectory}.`)
    }
  } else if (action === 'list') {
    const rows = listAgents(db, teamId).map(({ slug, name, engine, model }) => ({
      slug,
      name,
      engine,
      model: model ?? null,
    }))
    printList(given, rows, {
      slug: each => each.slug,
      name: each => each.name,
      engine: each => each.engine,
      model: each => each.model ?? '-',
    })
  } else if (action === 'show') {
    const agent = findAgent(db, teamId, subject)
    if (!agent) throw new UsageError(`There is no agent ${subject}.`)
    // The values of variables may be secrets.
    const envs = Object.fromEntries(Object.keys(agent.sandbox.envs).map(name => [name, '***']))
    const { mcpServers, acp, ...options } = agent.options
    const servers = mcpServers && { mcpServers: Object.keys(mcpServers) }
    const program = acp && { acp: { ...acp, ...(acp.env && { env: Object.keys(acp.env) }) } }
    console.log(
      JSON.stringify(
        { ...agent, options: { ...options, ...servers, ...program }, sandbox: { ...agent.sandbox, envs } },
        null,
        2,
      ),
    )
  } else {
    inTransaction(db, () => {
      if (!removeAgent(db, teamId, subject)) throw new UsageError(`There is no agent ${subject}.`)
      keepCommand(db, 'agents remove', { teamId, action: 'agent.removed', target: { agent: subject } })
    })
    if (!given.has('quiet')) console.log(`${subject} is removed. Its sandboxes stay.`)
  }
  db.close()
  if (action === 'apply' || action === 'remove') tellIfUnused()
}

/** Lists the engines of a server with these settings, and those of the last server on this directory. */
async function listEngines(config: Config): Promise<string[]> {
  const { dataDirectory } = config
  const { backends, engines } = await loadPlugins(config)
  for (const each of backends.values()) await each.close()
  const names = new Set(engines.keys())
  if (existsSync(join(dataDirectory, 'threadbox.db'))) {
    const db = await openData(dataDirectory)
    for (const name of findEngines(db)) names.add(name)
    db.close()
  }
  return [...names]
}
