import { aiSdk } from '../../plugins/ai-sdk/index.ts'
import { allWires, type ModelRequest, type ModelTurn, startModelServer } from '../support/model-server.ts'
import { describeEngine, type Scene } from './contract.ts'
import { engineOf } from './engine-of.ts'

const slow = (): ModelTurn => ({
  text: Array.from({ length: 200 }, (_, index) => `w${index} `).join(''),
  everyMs: 50,
})

/** Says what it was told last. */
const tell = ({ results, lastText }: ModelRequest): ModelTurn => ({ text: [...results, lastText].join('\n') })

const heed = (word: string) => (request: ModelRequest) => ({
  text: JSON.stringify(request.body).includes(word) ? word : 'nothing',
})

function script(scene: Scene): (ModelTurn | ((request: ModelRequest) => ModelTurn))[] {
  switch (scene.does) {
    case 'say':
      return [{ text: scene.text }]
    case 'run':
      return [{ text: 'I run it. ', calls: [{ name: 'Bash', input: { command: scene.command } }] }, { text: 'Done.' }]
    case 'say slowly':
      return [slow()]
    case 'fail at once':
      return [{ status: 401, message: 'wrong key' }]
    case 'fail after a word':
      return [{ text: 'So far ', ending: 'error' }]
    case 'call badly':
      return [
        { calls: [{ name: 'Bash', raw: '{"command": "echo' }] },
        { calls: [{ name: 'NoSuchTool', input: {} }] },
        { text: 'recovered' },
      ]
    case 'wait for its model for ever':
      return [{ silent: true }]
    case 'wait for ever after a word':
      return [{ text: 'So ', ending: 'hang' }]
    case 'call':
      return [{ calls: scene.calls.map(call => ({ ...call })) }, tell]
    case 'go on':
      return [tell, tell]
    case 'heed':
      return [{ calls: [{ name: 'Bash', input: { command: scene.command } }] }, heed(scene.word)]
    case 'heed at its end':
      return [{ text: 'One two three four five.', everyMs: 200 }, heed(scene.word)]
    case 'remember':
      return []
  }
}

for (const wire of allWires) {
  describeEngine(`ai-sdk on ${wire}`, () => {
    const server = startModelServer()
    return {
      engine: engineOf(aiSdk),
      openModel: () => server.access(wire),
      stage(scene) {
        if (scene.does === 'remember') server.play(request => ({ text: String(userMessages(request.body) - 1) }))
        else server.play(...script(scene))
        return 'Go.'
      },
      openCalls: () => server.openCalls,
      close: () => server.stop(),
    }
  })
}

/** How many messages of the user a request has, on any wire. */
const userMessages = ({ messages, input }: any): number =>
  (messages ?? input).filter(
    ({ role, content }: any) => role === 'user' && content.some?.(({ type }: any) => type !== 'tool_result') !== false,
  ).length
