import { ApiError } from '../../../src/errors.ts'
import type { CheckContext, EngineContext, TurnOptions } from '../../../src/plugin-api/index.ts'
import { assertProgram } from '../assert-program.ts'
import { claudeVariables } from '../claude-variables.ts'
import { OWN_SERVER } from '../client-tools.ts'
import type { Launch, PrepareLaunch } from '../conversation.ts'
import { SessionLost } from '../errors.ts'
import { openProgram } from '../program.ts'
import { createConversation } from './conversation.ts'

/** Pinned to the version that was tested. */
export const INSTALL = 'npm install -g --prefix /usr/local @anthropic-ai/claude-code@2.1.329'

/** Tools that would begin a turn by themselves, or wait for a person. */
const disallowedAlways = ['AskUserQuestion', 'CronCreate', 'CronDelete', 'CronList', 'Monitor', 'ScheduleWakeup']

/** Its messages come over the program's own stream. A call may wait for the client for weeks. */
const ownServer = { type: 'sdk', name: OWN_SERVER, timeout: 2 ** 31 - 1, disableAutoBackground: true }

/** Throws when the sandbox does not have the program. */
export const checkClaudeCode = (context: CheckContext): Promise<void> => assertProgram(context, 'claude', INSTALL)

/** Claude Code's command-line program, over its stream of JSON. */
export const prepareClaudeCodeLaunch: PrepareLaunch = (turn, context): Launch => {
  const { environment, cwd, options, signal } = context
  const access = context.openModel()
  if (access.wire !== 'anthropic') {
    throw new ApiError('invalid_request', `Claude Code needs a model of Anthropic's API; ${access.id} is not one.`)
  }
  const { permissions, clientTools } = context
  const asks = permissions.byOptionsAlone !== true
  const args = [...toArguments(options, { asks, clientTools }), ...toSystemPrompt(turn.systemPrompt)]
  const env = { ...context.env, ...claudeVariables(access) }
  const isPlanMode = options.permissionMode === 'plan'
  return {
    name: 'claude-code',
    key: JSON.stringify([args, env, cwd, clientTools]),
    async open(session) {
      await checkClaudeCode(context)
      const sessionId = session ?? crypto.randomUUID()
      const from = session === undefined ? ['--session-id', sessionId] : ['--resume', sessionId]
      const program = { command: ['claude', ...args, ...from], cwd, env, secret: access.programToken }
      return await openProgram(environment, program, signal, async started => {
        const conversation = createConversation(started, { sessionId, asks, isPlanMode, clientTools })
        const refusal = await conversation.ready
        if (refusal === undefined) return conversation
        throw /No conversation found/.test(refusal) ? new SessionLost(refusal) : new Error(refusal)
      })
    },
  }
}

const toSystemPrompt = (text: string | undefined): string[] =>
  text === undefined ? [] : ['--append-system-prompt', text]

function toArguments(
  options: TurnOptions,
  { asks, clientTools }: { asks: boolean; clientTools: EngineContext['clientTools'] },
): string[] {
  const { permissionMode, disallowedTools = [], deny = [], maxTurns } = options
  const hasClientTools = Object.keys(clientTools).length > 0
  const mcpServers = { ...options.mcpServers, ...(hasClientTools && { [OWN_SERVER]: ownServer }) }
  return [
    ...['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
    ...['--include-partial-messages', '--setting-sources', '', '--strict-mcp-config'],
    // Without rules, every mode but `plan` allows all tools. With them, this server decides.
    ...['--permission-mode', permissionMode === 'plan' ? 'plan' : asks ? 'default' : 'bypassPermissions'],
    ...(asks ? ['--permission-prompt-tool', 'stdio'] : []),
    ...['--disallowedTools', [...disallowedAlways, ...disallowedTools].join(',')],
    ...(deny.length === 0
      ? []
      : ['--settings', JSON.stringify({ permissions: { deny: deny.flatMap(toClaudeRules) } })]),
    ...(maxTurns === undefined ? [] : ['--max-turns', `${maxTurns}`]),
    ...(Object.keys(mcpServers).length > 0 ? ['--mcp-config', JSON.stringify({ mcpServers })] : []),
  ]
}

const readers = ['Read', 'Glob', 'Grep', 'LS']
const editors = ['Edit', 'Write', 'MultiEdit', 'NotebookEdit']

/** Claude Code's own rules begin an absolute path with two slashes, and name each tool that they take away. */
function toClaudeRules(rule: string): string[] {
  if (rule === 'Read') return readers
  if (rule === 'Edit') return editors
  return [
    rule.replace(/^([A-Za-z]+)\(\/+/, (whole, tool) =>
      [...readers, ...editors].includes(tool) ? `${tool}(//` : whole,
    ),
  ]
}
