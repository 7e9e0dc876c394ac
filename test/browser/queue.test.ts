import { describe, expect, test } from 'bun:test'
import { bash, useAgentServer } from '../support/agent-server.ts'
import { useBrowser } from './browser.ts'
import { aiVersions } from './pages.ts'
import { gated, useScene } from './scene.ts'

const agentServer = useAgentServer()
const { model } = agentServer
const scene = useScene(agentServer, useBrowser())

describe.each(aiVersions)('%s in Chromium', version => {
  test('queued messages wait, are taken back, and are answered in their order', async () => {
    const chat = await scene(version)
    const [first, second] = [gated({ text: 'First.' }), gated({ text: 'Second.' })]
    const work = (word: string) => ({ text: 'I work.', calls: [bash(`echo ${word}`)] })
    model.play(work('1'), first.turn, work('2'), second.turn, { text: 'Third.' })
    await chat.send('one')
    const begun = ['user: one', 'assistant: I work. [Bash output-available: 1]']
    await chat.showsSoFar(...begun)
    for (const [index, text] of ['two', 'not this', 'three'].entries()) {
      await chat.write(text)
      await chat.press('Queue')
      await chat.showsSoFar(...begun, ...['queued: two', 'queued: not this', 'queued: three'].slice(0, index + 1))
    }
    await chat.press('Take back', 3)
    await chat.showsSoFar(...begun, 'queued: two', 'queued: three')
    await chat.page.reload()
    await chat.showsSoFar(...begun, 'queued: two', 'queued: three')
    first.open()
    const answered = ['user: one', 'assistant: I work. [Bash output-available: 1] First.', 'user: two']
    await chat.showsSoFar(...answered, 'assistant: I work. [Bash output-available: 2]', 'queued: three')
    second.open()
    answered.push('assistant: I work. [Bash output-available: 2] Second.', 'user: three', 'assistant: Third.')
    await chat.shows(...answered)
    await chat.page.reload()
    await chat.shows(...answered)
    expect([chat.posts, chat.runs()]).toEqual([4, ['completed', 'completed', 'completed']])
  })

  test('a message that steers is heeded in the reply that is under way', async () => {
    const chat = await scene(version)
    const goOn = gated({ calls: [bash('echo 2')] })
    model.play({ text: 'I work.', calls: [bash('echo 1')] }, goOn.turn, ({ body }) => ({
      text: JSON.stringify(body.messages.at(-1)).includes('Heed this.') ? 'I heed it.' : 'I know nothing of it.',
    }))
    await chat.send('Work.')
    const [asked, begun] = ['user: Work.', 'assistant: I work. [Bash output-available: 1]']
    await chat.showsSoFar(asked, begun)
    await chat.write('Heed this.')
    await chat.press('Steer')
    await chat.showsSoFar(asked, begun, 'queued: Heed this.')
    goOn.open()
    const heeded = [asked, 'user: Heed this.', `${begun} [Bash output-available: 2] I heed it.`]
    await chat.shows(...heeded)
    await chat.page.reload()
    await chat.shows(...heeded)
    expect([chat.posts, chat.runs()]).toEqual([2, ['completed']])
  })
})

test('ai 7 in Chromium shows a message that steers where it was heeded, with the stream ai-7', async () => {
  const chat = await scene('ai 7', { body: { stream: 'ai-7' } })
  const [goOn, last] = [gated({ calls: [bash('echo 2')] }), gated({ text: 'I heed it.' })]
  model.play({ text: 'I work.', calls: [bash('echo 1')] }, goOn.turn, last.turn)
  await chat.send('Work.')
  const [asked, begun] = ['user: Work.', 'assistant: I work. [Bash output-available: 1]']
  await chat.showsSoFar(asked, begun)
  await chat.write('Heed this.')
  await chat.press('Steer')
  await chat.showsSoFar(asked, begun, 'queued: Heed this.')
  goOn.open()
  const heeded = `${begun} [Bash output-available: 2] (steered: Heed this.)`
  await chat.showsSoFar(asked, heeded, 'queued: Heed this.')
  last.open()
  await chat.shows(asked, 'user: Heed this.', `${begun} [Bash output-available: 2] I heed it.`)
  expect([chat.posts, chat.runs()]).toEqual([2, ['completed']])
})
