import type { Agent } from '../../db/agents.ts'
import type { Sandbox } from '../../db/sandboxes.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { EngineEnd, EngineEvent, Environment, TurnOptions } from '../../plugin-api/index.ts'
import { readBytes } from '../../read/bytes.ts'
import { logAgent } from '../agents/agent-log.ts'
import { placeTools, TOOLS_LOG } from '../agents/user-tools.ts'
import type { Runtime } from '../runtime.ts'

/** The MCP server of the agent's own tools, as engines and models know it. */
const SERVER = 'user-tools'

/** As much as the tools' server writes there. */
const MAX_LOG_BYTES = 1024 * 1024

type Events = AsyncGenerator<EngineEvent, EngineEnd>

interface Place {
  agent: Agent
  sandbox: Sandbox
  environment: Environment
  signal: AbortSignal
}

/**
 * An engine's turn with the agent's own tools among its MCP servers. What goes wrong, and what the tools print, is in the
 * agent's log. A turn whose tools cannot be brought has failed.
 */
export async function* turnWithTools(
  runtime: Runtime,
  place: Place,
  options: TurnOptions,
  run: (options: TurnOptions) => Events,
): Events {
  const { agent, sandbox, signal } = place
  const log = (level: 'info' | 'warn' | 'error', text: string) =>
    logAgent(runtime.db, agent.id, { source: 'engine', level, sandboxId: sandbox.id, text }, sandbox.envs)
  let events: Events
  try {
    events = run(await withServer(runtime, place, options))
  } catch (error) {
    if (signal.aborted) return { status: 'cancelled' }
    log('error', messageOf(error))
    const code = error instanceof ApiError ? error.code : 'sandbox_unavailable'
    return { status: 'failed', error: { code, message: `The agent's tools: ${messageOf(error)}` } }
  }
  try {
    for (;;) {
      const { value, done } = await events.next()
      if (done && value.error) log('error', value.error.message)
      if (done) return value
      if (value.type === 'notice') log(value.level, `${value.code}: ${value.text}`)
      yield value
    }
  } finally {
    await events.return({ status: 'cancelled' })
    if (sandbox.bundle !== undefined) await takeToolsLog(runtime, place)
  }
}

async function withServer({ bundles }: Runtime, { sandbox, environment }: Place, options: TurnOptions) {
  if (sandbox.bundle === undefined) return options
  const [command = '', ...args] = await placeTools(environment, bundles, sandbox.bundle)
  const server = { type: 'stdio' as const, command, args: [...args, '--log', TOOLS_LOG], env: sandbox.envs }
  return { ...options, mcpServers: { ...options.mcpServers, [SERVER]: server } }
}

/** Moves what the tools have printed to the agent's log. Another turn's may be among it. */
async function takeToolsLog({ db }: Runtime, { agent, sandbox, environment }: Place): Promise<void> {
  const { files } = environment
  const taken = `${TOOLS_LOG}.${crypto.randomUUID()}`
  try {
    await files.rename(TOOLS_LOG, taken)
    const { body } = await files.read(taken)
    const text = (await readBytes(body, MAX_LOG_BYTES))?.toString('utf8') ?? ''
    logAgent(db, agent.id, { source: 'tools', level: 'info', sandboxId: sandbox.id, text }, sandbox.envs)
    await files.remove(taken)
  } catch {
    // They have printed nothing, or the sandbox is gone.
  }
}
