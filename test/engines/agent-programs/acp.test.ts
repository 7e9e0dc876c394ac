import { acp } from '../../../plugins/agent-programs/index.ts'
import type { Engine } from '../../../src/plugin-api/index.ts'
import { accessInside, bringScriptedAgent, openAgentSandbox } from '../../support/agent-sandbox.ts'
import { startModelServer } from '../../support/model-server.ts'
import { describeEngine, type Scene } from '../contract.ts'
import { engineOf } from '../engine-of.ts'

const model = startModelServer()
/** The engine with the scripted agent as its program. */
const scripted = (engine: Engine = engineOf(acp)): Engine => ({
  ...engine,
  run: (turn, context) =>
    engine.run(turn, { ...context, options: { acp: { command: 'acp-agent' }, ...context.options } }),
})

function toPrompt(scene: Scene): string | undefined {
  switch (scene.does) {
    case 'say':
      return `say ${scene.text}`
    case 'run':
      return `run ${scene.command}`
    case 'say slowly':
      return 'slowly'
    case 'remember':
      return 'remember'
    case 'fail at once':
      return 'fail'
    case 'fail after a word':
      return 'fail word'
    case 'wait for its model for ever':
      model.play({ silent: true })
      return 'model'
    case 'wait for ever after a word':
      model.play({ text: 'So ', ending: 'hang' })
      return 'model'
    case 'call':
      return `calls ${JSON.stringify(scene.calls)}`
    case 'call badly':
      return undefined
    case 'go on':
      // It does as it is told.
      return ''
  }
}

describeEngine(
  'acp',
  () => ({
    engine: scripted(),
    reopen: () => scripted(),
    openModel: () => accessInside(model, 'anthropic'),
    stage: toPrompt,
    openCalls: () => model.openCalls,
    close: () => model.stop(),
  }),
  async () => {
    const sandbox = await openAgentSandbox(model)
    await bringScriptedAgent(sandbox.environment)
    return sandbox
  },
)
