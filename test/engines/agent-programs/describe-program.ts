import type { Engine } from '../../../src/plugin-api/index.ts'
import type { SceneCall } from '../../../src/plugin-suite/scene.ts'
import { accessInside, bringProgram, openAgentSandbox } from '../../support/agent-sandbox.ts'
import { type ModelCall, type ModelRequest, type ModelTurn, startModelServer } from '../../support/model-server.ts'
import { describeEngine, type Scene } from '../contract.ts'
import { engineOf } from '../engine-of.ts'
import { type ProgramUnderTest, playTo, programs } from './programs.ts'

/** The contract of engines, on a program as it comes from npm. */
export function describeProgram(name: string): void {
  const program = programs[name]
  if (!program) throw new Error(`${name} is none of ${Object.keys(programs).join(', ')}`)
  const model = startModelServer()
  const withOptions = (engine: Engine): Engine => ({
    ...engine,
    run: (turn, context) => engine.run(turn, { ...context, options: { ...program.options, ...context.options } }),
  })
  const subject = withOptions(engineOf(program.plugin))
  describeEngine(
    name,
    () => ({
      engine: subject,
      openModel: () => accessInside(model, program.wire, program.model),
      stage(scene) {
        const turns = turnsOf(scene, program)
        if (turns) playTo(model, ...turns)
        return turns && 'Go.'
      },
      openCalls: () => model.openCalls,
      reopen: () => withOptions(engineOf(program.plugin)),
      close: () => model.stop(),
    }),
    async () => {
      const sandbox = await openAgentSandbox(model)
      await bringProgram(sandbox.environment, name)
      return sandbox
    },
  )
}

type Script = Parameters<typeof playTo>[1]

function turnsOf(scene: Scene, program: ProgramUnderTest): Script[] | undefined {
  switch (scene.does) {
    case 'say':
      return [{ text: scene.text }]
    case 'run':
      if (program.hidesOutput && scene.command.includes('from-inside')) return undefined
      return [{ text: 'I run it. ', calls: [program.shell(scene.command)] }, { text: 'Done.' }]
    case 'say slowly':
      return [{ text: Array.from({ length: 200 }, (_, index) => `w${index} `).join(''), everyMs: 50 }]
    case 'remember':
      return [({ lastText }) => ({ text: `${lastText.match(/^User: /gm)?.length}` })]
    case 'fail at once':
      if (program.saysItsFailures) return undefined
      // As the gateway says it.
      return many({ status: 401, message: 'wrong key', headers: { 'x-should-retry': 'false' } })
    case 'fail after a word':
      return program.hidesBreaks ? undefined : many({ text: 'So far ', ending: 'error' })
    case 'call badly':
      if (program.wire !== 'anthropic') return undefined
      return [
        { calls: [{ name: 'Bash', raw: '{"command": "echo' }] },
        { calls: [{ name: 'NoSuchTool', input: {} }] },
        { text: 'recovered' },
      ]
    case 'call':
      if (program.endsByDenial && scene.calls.filter(({ name }) => name === 'Bash').length > 1) return undefined
      return program.asks && [{ calls: scene.calls.map(call => toCall(call, program)) }, tell, tell]
    case 'go on': {
      const again = ({ lastText }: ModelRequest): ModelTurn =>
        lastText.includes('Make each approved call again')
          ? { calls: scene.calls.map(call => toCall(call, program)) }
          : { text: '' }
      return [
        request => (JSON.stringify(again(request)) === '{"text":""}' ? tell(request) : again(request)),
        tell,
        tell,
      ]
    }
    case 'heed':
      return [{ calls: [program.shell(scene.command)] }, heed(scene.word), { text: 'Nothing more.' }]
    case 'heed at its end':
      return [{ text: 'One two three four five.', everyMs: 200 }, heed(scene.word)]
    case 'wait for its model for ever':
      return [{ silent: true }]
    case 'wait for ever after a word':
      return [{ text: 'So ', ending: 'hang' }]
  }
}

const heed =
  (word: string): Script =>
  ({ body }) => ({ text: JSON.stringify(body).includes(word) ? word : 'nothing' })

/** Says what it was told last. */
const tell = ({ results, lastText }: ModelRequest): ModelTurn => ({ text: [...results, lastText].join('\n') })

const toCall = (
  { name, input }: SceneCall,
  { shell, askingShell = shell, client }: Pick<ProgramUnderTest, 'shell' | 'askingShell' | 'client'>,
): ModelCall => (name === 'Bash' ? askingShell(String(input.command)) : (client ?? claudesOwn)(name, input))

const claudesOwn = (name: string, input: object): ModelCall => ({ name: `mcp__client-tools__${name}`, input })

const many = (turn: ModelTurn): ModelTurn[] => Array.from({ length: 50 }, () => turn)
