import type { Engine, Plugin } from '../../src/plugin-api/index.ts'
import { checkAcp, prepareAcpLaunch } from './acp/launch.ts'
import { checkClaudeCode, prepareClaudeCodeLaunch } from './claude-code/launch.ts'
import type { PrepareLaunch } from './conversation.ts'
import { createIdleConversations } from './idle-conversations.ts'
import { runTurn } from './turn.ts'

/** How long a program waits for the next turn of its thread. */
const IDLE_MS = 300_000

type Given = Pick<Engine, 'name' | 'supports'> & { check: Required<Engine>['check'] }

const createEngine = (given: Given, prepare: PrepareLaunch): Engine => {
  const idle = createIdleConversations(IDLE_MS)
  return { ...given, run: (turn, context) => runTurn(prepare, idle, turn, context), close: () => idle.close() }
}

/** Claude Code's command-line program, in the sandbox. */
export const claudeCode: Plugin = {
  name: 'claude-code',
  engine: () =>
    createEngine(
      { name: 'claude-code', supports: ['approvals', 'clientTools', 'steering'], check: checkClaudeCode },
      prepareClaudeCodeLaunch,
    ),
}

/** Any program that speaks the Agent Client Protocol, in the sandbox. */
export const acp: Plugin = {
  name: 'acp',
  engine: () =>
    createEngine({ name: 'acp', supports: ['approvals', 'clientTools'], check: checkAcp }, prepareAcpLaunch),
}
