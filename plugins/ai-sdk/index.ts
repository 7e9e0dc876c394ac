import type { Engine, Plugin } from '../../src/plugin-api/index.ts'

/**
 * The built-in agent: a model that works with tools in the sandbox. Runs on Anthropic, OpenAI and OpenAI-compatible models.
 * The SDK is loaded by the first turn, so a server that never has one does not pay for it.
 */
export const aiSdk: Plugin = { name: 'ai-sdk', engine: () => engine }

const engine: Engine = {
  name: 'ai-sdk',
  supports: ['approvals', 'clientTools', 'steering'],
  async *run(turn, context) {
    const { runTurn } = await import('./turn.ts')
    return yield* runTurn(turn, context)
  },
}
