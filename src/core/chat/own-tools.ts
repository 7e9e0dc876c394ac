import { ApiError, messageOf } from '../../errors.ts'
import type { EngineEnd, Environment, TurnOptions } from '../../plugin-api/index.ts'
import { readBytes } from '../../read/bytes.ts'
import { placeTools, TOOLS_LOG } from '../agents/user-tools.ts'
import type { Bundles } from '../runtime.ts'

/** The MCP server of the agent's own tools, as engines and models know it. */
const SERVER = 'user-tools'

/** As much as the tools' server writes there. */
const MAX_LOG_BYTES = 1024 * 1024

/**
 * Brings an agent's own tools into its sandbox and adds them to a turn's MCP servers. Throws when they cannot be
 * brought.
 */
export async function withOwnTools(
  environment: Environment,
  bundles: Bundles,
  bundle: string,
  { env, options }: { env: Record<string, string>; options: TurnOptions },
): Promise<TurnOptions> {
  const [command = '', ...args] = await placeTools(environment, bundles, bundle)
  const server = { type: 'stdio' as const, command, args: [...args, '--log', TOOLS_LOG], env }
  return { ...options, mcpServers: { ...options.mcpServers, [SERVER]: server } }
}

/** The end of a turn whose tools could not be brought. */
export function failedByTools(error: unknown): EngineEnd {
  const code = error instanceof ApiError ? error.code : 'sandbox_unavailable'
  return { status: 'failed', error: { code, message: `The agent's tools: ${messageOf(error)}` } }
}

/** Takes what the tools have printed. Another turn's output may be in it. Empty when the sandbox is gone. */
export async function takeToolsLog({ files }: Environment): Promise<string> {
  const taken = `${TOOLS_LOG}.${crypto.randomUUID()}`
  try {
    await files.rename(TOOLS_LOG, taken)
    const { body } = await files.read(taken)
    const text = (await readBytes(body, MAX_LOG_BYTES))?.toString('utf8') ?? ''
    await files.remove(taken).catch(() => {})
    return text
  } catch {
    // They have printed nothing, or the sandbox is gone.
    return ''
  }
}
