import type { Engine, Plugin } from '../../src/plugin-api/index.ts'
import { checkAcp, planAcp } from './acp/launch.ts'
import { checkClaudeCode, planClaudeCode } from './claude-code/launch.ts'
import type { Plan } from './conversation.ts'
import { createShelf } from './idle-conversations.ts'
import { runTurn } from './turn.ts'

/** How long a program waits for the next turn of its thread. */
const IDLE_MS = 300_000

const engineOf = (name: string, plan: Plan, check: Required<Engine>['check']): Engine => {
  const shelf = createShelf(IDLE_MS)
  return { name, check, run: (turn, context) => runTurn(plan, shelf, turn, context), close: () => shelf.close() }
}

/** Claude Code's command-line program, in the sandbox. */
export const claudeCode: Plugin = {
  name: 'claude-code',
  engine: () => engineOf('claude-code', planClaudeCode, checkClaudeCode),
}

/** Any Agent Client Protocol program, in the sandbox. */
export const acp: Plugin = { name: 'acp', engine: () => engineOf('acp', planAcp, checkAcp) }
