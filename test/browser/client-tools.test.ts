import { describe, expect, test } from 'bun:test'
import { bash, useAgentServer } from '../support/agent-server.ts'
import { useBrowser } from './browser.ts'
import type { AiVersion } from './pages.ts'
import { gated, useScene } from './scene.ts'

const agentServer = useAgentServer()
const { server, model } = agentServer
const scene = useScene(agentServer, useBrowser())

const inputSchema = { type: 'object', properties: {} }
const tools = {
  PageTitle: { description: 'The title of the page.', inputSchema },
  PickColor: { description: 'Asks the user for a color.', inputSchema },
}
const call = (name: keyof typeof tools) => ({ name, input: {} })

const profiles: [AiVersion, string][] = [
  ['ai 7', 'ai-7'],
  ['ai 7', 'full'],
  ['ai 7', 'contract'],
  ['ai 6', 'full'],
  ['ai 5', 'contract'],
]

describe.each(profiles)('%s in Chromium, with the stream %s', (version, stream) => {
  const open = () => scene(version, { body: { stream, tools }, automatic: 'tools' })

  test('a tool that the page executes is one post more, in the same message', async () => {
    const chat = await open()
    const last = gated({ text: 'So it is.' })
    model.play({ text: 'I look.', calls: [call('PageTitle')] }, last.turn, { text: 'Yes.' })
    await chat.send('Where am I?')
    const looked = ['user: Where am I?', 'assistant: I look. [PageTitle output-available: A chat!]']
    await chat.says(...looked)
    await chat.begins(2)
    await chat.page.reload()
    // The page has what is stored, and follows the reply.
    await chat.showsSoFar(...looked)
    last.open()
    await chat.shows(looked[0]!, `${looked[1]} So it is.`)
    expect(JSON.stringify(model.requests.at(-1)?.results)).toContain('A chat!')
    await chat.page.reload()
    await chat.shows(looked[0]!, `${looked[1]} So it is.`)
    await chat.send('Sure?')
    await chat.shows(looked[0]!, `${looked[1]} So it is.`, 'user: Sure?', 'assistant: Yes.')
    expect([chat.posts, chat.runs()]).toEqual([3, ['waiting', 'completed', 'completed']])
  })

  test('a call that a person answers waits over a reload', async () => {
    const chat = await open()
    model.play({ calls: [bash('echo 1'), call('PickColor')] }, { calls: [call('PickColor')] }, { text: 'Nice.' })
    await chat.send('Choose.')
    const chosen = ['user: Choose.', 'assistant: [Bash output-available: 1] [PickColor input-available]']
    await chat.shows(...chosen)
    await chat.page.reload()
    await chat.shows(...chosen)
    await chat.write('red')
    await chat.press('Answer', 1)
    const red = 'assistant: [Bash output-available: 1] [PickColor output-available: red]'
    await chat.shows('user: Choose.', `${red} [PickColor input-available]`)
    await chat.write('no more colors')
    await chat.press('Refuse', 1)
    await chat.shows('user: Choose.', `${red} [PickColor output-error: no more colors] Nice.`)
    expect(JSON.stringify(model.requests.at(-1)?.results)).toContain('no more colors')
    expect([chat.posts, chat.runs()]).toEqual([3, ['waiting', 'waiting', 'completed']])
  })

  test('a call can be answered from elsewhere, while no page is open', async () => {
    const chat = await open()
    model.play({ calls: [call('PickColor')] }, { text: 'Blue it is.' })
    await chat.send('Choose.')
    await chat.shows('user: Choose.', 'assistant: [PickColor input-available]')
    const { messages } = await chat.thread()
    const path = `/v1/sandboxes/${chat.sandboxId}/threads/${chat.threadId}/tool-results`
    const { toolCallId } = messages[1].parts.at(-1)
    expect((await server.ask('POST', path, { toolCallId, output: 'blue' })).status).toBeLessThan(300)
    await chat.settles()
    await chat.page.reload()
    await chat.shows('user: Choose.', 'assistant: [PickColor output-available: blue] Blue it is.')
    expect([chat.posts, chat.runs()]).toEqual([1, ['waiting', 'completed']])
  })

  test('a message in place of an answer closes the call', async () => {
    const chat = await open()
    model.play({ calls: [call('PickColor')] }, { text: 'As you like.' })
    await chat.send('Choose.')
    await chat.shows('user: Choose.', 'assistant: [PickColor input-available]')
    await chat.send('Never mind.')
    await chat.settles()
    await chat.page.reload()
    await chat.shows(
      'user: Choose.',
      'assistant: [PickColor output-error: The user went on without an answer.]',
      'user: Never mind.',
      'assistant: As you like.',
    )
    expect([chat.posts, chat.runs()]).toEqual([2, ['waiting', 'completed']])
  })
})
