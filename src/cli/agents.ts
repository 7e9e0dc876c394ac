import { readAgentFiles } from '../core/agent-files.ts'
import { DEFAULT_TEAM, ensureTeamWithEcho } from '../core/teams.ts'
import { findAgent, listAgents, removeAgent, saveAgent } from '../db/agents.ts'
import { type Given, UsageError } from './command-line.ts'
import { deploy } from './deploy.ts'
import { printList } from './list.ts'
import { openData } from './open-data.ts'

/** Works beside a running server, which sees the change at once; a deploy goes through it. */
export async function agents(given: Given): Promise<void> {
  const { action, settings } = given
  if (action === 'deploy') return await deploy(given)
  const [subject = ''] = given.words
  const db = await openData(settings)
  const { id: teamId } = ensureTeamWithEcho(db, given.find('team') ?? DEFAULT_TEAM)
  if (action === 'apply') {
    for (const input of await readAgentFiles(subject)) {
      const { slug } = saveAgent(db, teamId, input)
      if (!given.has('quiet')) console.log(`${slug} is applied.`)
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
    // Values of variables may be secrets.
    const envs = Object.fromEntries(Object.keys(agent.sandbox.envs).map(name => [name, '***']))
    const { mcpServers, ...options } = agent.options
    const servers = mcpServers && { mcpServers: Object.keys(mcpServers) }
    console.log(
      JSON.stringify({ ...agent, options: { ...options, ...servers }, sandbox: { ...agent.sandbox, envs } }, null, 2),
    )
  } else {
    if (!removeAgent(db, teamId, subject)) throw new UsageError(`There is no agent ${subject}.`)
    if (!given.has('quiet')) console.log(`${subject} is removed. Its sandboxes stay.`)
  }
  db.close()
}
