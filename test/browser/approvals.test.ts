import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bash, modelSetups, useAgentServer } from '../support/agent-server.ts'
import { useBrowser } from './browser.ts'
import type { AiVersion } from './pages.ts'
import { gated, type Scene, useScene } from './scene.ts'

const agentServer = useAgentServer(modelSetups.slice(0, 1), { flags: ['--agents', join(import.meta.dir, 'agents')] })
const { server, model } = agentServer
const scene = useScene(agentServer, useBrowser())

const ask = { text: 'I make it.', calls: [bash('touch made; echo done')] }
const asked = ['user: Make it.', 'assistant: I make it. [Bash approval-requested]']
const made = ['user: Make it.', 'assistant: I make it. [Bash output-available: done]']
const isMade = async ({ sandboxId }: Scene) => (await server.exec(sandboxId, 'ls')).stdout.includes('made')

/** Answers as another program does. */
async function answerElsewhere({ threadId }: Scene, answer: object): Promise<number> {
  const { body } = await server.ask('GET', `/v1/approvals?status=pending&threadId=${threadId}`)
  return (await server.ask('POST', `/v1/approvals/${body.approvals[0].id}`, answer)).status
}

const profiles: [AiVersion, string][] = [
  ['ai 7', 'ai-7'],
  ['ai 7', 'full'],
  ['ai 6', 'full'],
]

describe.each(profiles)('%s in Chromium, with the stream %s', (version, stream) => {
  const open = () => scene(version, { agent: 'careful', body: { stream }, automatic: 'approvals', watches: true })

  test('a call that is approved in the page runs, in the same message', async () => {
    const chat = await open()
    model.play(ask, { text: 'Made.' }, { text: 'You are welcome.' })
    await chat.send('Make it.')
    await chat.shows(...asked)
    expect([await isMade(chat), (await chat.thread()).status, chat.runs()]).toEqual([false, 'waiting', ['waiting']])
    await chat.press('Approve', 1)
    await chat.shows(made[0]!, `${made[1]} Made.`)
    expect(await isMade(chat)).toBe(true)
    const ids = await chat.messageIds()
    await chat.page.reload()
    await chat.shows(made[0]!, `${made[1]} Made.`)
    expect(await chat.messageIds()).toEqual(ids)
    await chat.send('Thanks.')
    await chat.shows(made[0]!, `${made[1]} Made.`, 'user: Thanks.', 'assistant: You are welcome.')
    expect([chat.posts, chat.runs()]).toEqual([3, ['waiting', 'completed', 'completed']])
  })

  test('a call that is denied in the page never runs, and the model learns why', async () => {
    const chat = await open()
    model.play(ask, { text: 'I leave it.' })
    await chat.send('Make it.')
    await chat.shows(...asked)
    await chat.write('Not on a Sunday.')
    await chat.press('Deny', 1)
    const denied = ['user: Make it.', 'assistant: I make it. [Bash output-denied] I leave it.']
    await chat.shows(...denied)
    expect(JSON.stringify(model.requests.at(-1)?.body.messages.at(-1))).toContain('Not on a Sunday.')
    await chat.page.reload()
    await chat.shows(...denied)
    expect([await isMade(chat), chat.posts, chat.runs()]).toEqual([false, 2, ['waiting', 'completed']])
  })

  test('what waits is there after a reload, and what goes on is one message after another', async () => {
    const chat = await open()
    const last = gated({ text: 'Made.' })
    model.play(ask, last.turn)
    await chat.send('Make it.')
    await chat.shows(...asked)
    await chat.page.reload()
    await chat.shows(...asked)
    await chat.press('Approve', 1)
    await chat.showsSoFar(...made)
    await chat.page.reload()
    await chat.showsSoFar(...made)
    last.open()
    await chat.shows(made[0]!, `${made[1]} Made.`)
    expect([await isMade(chat), chat.posts, chat.runs()]).toEqual([true, 2, ['waiting', 'completed']])
  })

  test('a page finds by resume what was approved elsewhere', async () => {
    const chat = await open()
    const last = gated({ text: 'Made.' })
    model.play(ask, last.turn)
    await chat.send('Make it.')
    await chat.shows(...asked)
    expect(await answerElsewhere(chat, { approved: true })).toBe(200)
    await chat.showsSoFar(...made)
    last.open()
    await chat.shows(made[0]!, `${made[1]} Made.`)
    expect([await isMade(chat), chat.posts, chat.runs()]).toEqual([true, 1, ['waiting', 'completed']])
  })

  test('two calls of one step are answered one by one, and posted once', async () => {
    const chat = await open()
    model.play({ calls: [bash('echo a'), bash('echo b')] }, { text: 'So.' })
    await chat.send('Both.')
    await chat.shows('user: Both.', 'assistant: [Bash approval-requested] [Bash approval-requested]')
    await chat.press('Approve', 1, 1)
    await chat.shows('user: Both.', 'assistant: [Bash approval-requested] [Bash approval-responded]')
    await chat.press('Deny', 1)
    await chat.shows('user: Both.', 'assistant: [Bash output-denied] [Bash output-available: b] So.')
    expect([chat.posts, chat.runs()]).toEqual([2, ['waiting', 'completed']])
  })

  test.each(['Approve', 'Answer'])('a call that asks and one of the page are posted once, first %s', async first => {
    const PickColor = { description: 'Asks the user for a color.', inputSchema: { type: 'object', properties: {} } }
    const chat = await scene(version, { agent: 'careful', body: { stream, tools: { PickColor } }, automatic: 'both' })
    model.play({ calls: [bash('echo a'), { name: 'PickColor', input: {} }] }, { text: 'So.' })
    await chat.send('Both.')
    await chat.shows('user: Both.', 'assistant: [Bash approval-requested] [PickColor input-available]')
    await chat.write('red')
    await chat.press(first, 1)
    await chat.shows(
      'user: Both.',
      first === 'Approve'
        ? 'assistant: [Bash approval-responded] [PickColor input-available]'
        : 'assistant: [Bash approval-requested] [PickColor output-available: red]',
    )
    await chat.press(first === 'Approve' ? 'Answer' : 'Approve', 1)
    await chat.shows('user: Both.', 'assistant: [Bash output-available: a] [PickColor output-available: red] So.')
    expect([chat.posts, chat.runs()]).toEqual([2, ['waiting', 'completed']])
  })

  test('a turn that asks twice is one message', async () => {
    const chat = await open()
    model.play(ask, { text: 'And more.', calls: [bash('echo more')] }, { text: 'Made.' })
    await chat.send('Make it.')
    await chat.shows(...asked)
    await chat.press('Approve', 1)
    await chat.shows(made[0]!, `${made[1]} And more. [Bash approval-requested]`)
    await chat.press('Approve', 1)
    await chat.shows(made[0]!, `${made[1]} And more. [Bash output-available: more] Made.`)
    expect([chat.posts, chat.runs()]).toEqual([3, ['waiting', 'waiting', 'completed']])
  })

  test('what is approved after another message runs in a message of its own', async () => {
    const chat = await open()
    model.play(ask, { text: 'We talk.' }, { text: 'Made after all.' })
    await chat.send('Make it.')
    await chat.shows(...asked)
    await chat.send('Talk.')
    const talked = [...asked, 'user: Talk.', 'assistant: We talk.']
    await chat.shows(...talked)
    expect(await answerElsewhere(chat, { approved: true })).toBe(200)
    await chat.settles()
    await chat.page.reload()
    const { messages } = await chat.thread()
    expect(messages.map(({ role }: any) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'assistant'])
    expect([await isMade(chat), chat.posts, chat.runs()]).toEqual([true, 2, ['waiting', 'completed', 'completed']])
  })
})

describe('ai 5 in Chromium, with the stream of the contract', () => {
  test('a call waits open, and a page that is loaded again finds what was approved elsewhere', async () => {
    const chat = await scene('ai 5', { agent: 'careful', automatic: 'tools', watches: true })
    const last = gated({ text: 'Made.' })
    model.play(ask, last.turn)
    await chat.send('Make it.')
    await chat.shows('user: Make it.', 'assistant: I make it. [Bash input-available]')
    await chat.page.reload()
    await chat.shows(...asked)
    expect(await answerElsewhere(chat, { approved: true })).toBe(200)
    await chat.showsSoFar(...made)
    last.open()
    await chat.shows(made[0]!, `${made[1]} Made.`)
    expect([await isMade(chat), chat.posts, chat.runs()]).toEqual([true, 1, ['waiting', 'completed']])
  })
})
