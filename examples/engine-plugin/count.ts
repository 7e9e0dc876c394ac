// An engine that answers with the number of words in the prompt, counted in the sandbox.
import { type Engine, type EngineContract, type Plugin, runShell, type StoredMessage } from 'threadbox'

const engine: Engine = {
  name: 'count',
  async *run({ prompt }, { environment, cwd, env, signal }) {
    try {
      const text = prompt.map(textOf).join('\n')
      if (text.includes('!')) throw new Error('it does not count shouts')
      const { stdout } = await runShell(environment, {
        command: ['sh', '-c', 'printf %s "$1" | wc -w', 'sh', text],
        cwd,
        env,
        signal,
      })
      yield { type: 'text', id: 'reply', delta: `${stdout.trim()} words` }
      return { status: 'completed' }
    } catch (error) {
      if (signal.aborted) return { status: 'cancelled' }
      const message = `The words cannot be counted: ${error instanceof Error ? error.message : error}.`
      return { status: 'failed', error: { code: 'internal_error', message } }
    }
  },
}

const textOf = ({ parts }: StoredMessage): string =>
  parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('\n')

export default { name: 'count', engine: () => engine } satisfies Plugin

/** For `threadbox plugin test`: the prompt that makes this engine play a scene. It plays few: what it cannot is left out. */
export const contract: EngineContract = {
  stage: scene => (scene.does === 'fail at once' ? 'Count!' : undefined),
}
