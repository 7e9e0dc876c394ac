import type { Engine, Plugin } from '../../src/plugin.ts'
import { planAcp } from './acp/launch.ts'
import { planClaudeCode } from './claude-code/launch.ts'
import type { Plan } from './conversation.ts'
import { createShelf } from './shelf.ts'
import { runTurn } from './turn.ts'

/** How long a program waits for the next turn of its thread. */
const IDLE_MS = 300_000

const engineOf = (name: string, plan: Plan): Engine => {
  const shelf = createShelf(IDLE_MS)
  return { name, run: (turn, context) => runTurn(plan, shelf, turn, context), close: () => shelf.close() }
}

/** Claude Code's command-line program, in the sandbox. */
export const claudeCode: Plugin = { name: 'claude-code', engine: () => engineOf('claude-code', planClaudeCode) }

/** Any Agent Client Protocol program, in the sandbox. */
export const acp: Plugin = { name: 'acp', engine: () => engineOf('acp', planAcp) }
