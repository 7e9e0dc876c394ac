import { readAgentFiles } from '../core/agent-files.ts'
import { DEFAULT_TEAM, ensureTeamWithEcho } from '../core/teams.ts'
import { findAgent, listAgents, removeAgent, saveAgent } from '../db/agents.ts'
import { deploy } from './deploy.ts'
import { splitWords, takeFlags, UsageError } from './flags.ts'
import { openData } from './open-data.ts'

const usage = 'threadbox agents apply FILE or DIR | deploy DIR or FILE | list | show SLUG | remove SLUG   [--team TEAM]'

/** Works beside a running server, which sees the change at once; a deploy goes through it. */
export async function agents(args: readonly string[]): Promise<void> {
  if (args[0] === 'deploy') return await deploy(args.slice(1))
  const { flags, rest } = takeFlags(args, ['team'])
  const { words, flags: settings } = splitWords(rest)
  const [action, subject] = words
  const db = await openData(settings)
  const { id: teamId } = ensureTeamWithEcho(db, flags.team ?? DEFAULT_TEAM)
  if (action === 'apply' && subject) {
    for (const input of await readAgentFiles(subject)) console.log(`${saveAgent(db, teamId, input).slug} is applied.`)
  } else if (action === 'list') {
    for (const { slug, name, engine, model = '-' } of listAgents(db, teamId)) {
      console.log([slug, name, engine, model].join('\t'))
    }
  } else if (action === 'show' && subject) {
    const agent = findAgent(db, teamId, subject)
    if (!agent) throw new UsageError(`There is no agent ${subject}.`)
    // Values of variables may be secrets.
    const envs = Object.fromEntries(Object.keys(agent.sandbox.envs).map(name => [name, '***']))
    const { mcpServers, ...options } = agent.options
    const servers = mcpServers && { mcpServers: Object.keys(mcpServers) }
    console.log(
      JSON.stringify({ ...agent, options: { ...options, ...servers }, sandbox: { ...agent.sandbox, envs } }, null, 2),
    )
  } else if (action === 'remove' && subject) {
    if (!removeAgent(db, teamId, subject)) throw new UsageError(`There is no agent ${subject}.`)
    console.log(`${subject} is removed. Its sandboxes stay.`)
  } else {
    throw new UsageError(`usage: ${usage}`)
  }
  db.close()
}
