import { describe, expect, test } from 'bun:test'
import { useAgentServer } from '../support/agent-server.ts'
import { useBrowser } from './browser.ts'
import { aiVersions } from './pages.ts'
import { useScene } from './scene.ts'

const agentServer = useAgentServer()
const { model } = agentServer
const scene = useScene(agentServer, useBrowser())

describe.each(aiVersions)('%s in Chromium', version => {
  test('what an edit or a new reply cut off is a branch that the page can show, and go on with', async () => {
    const chat = await scene(version)
    model.play({ text: 'one' }, { text: 'two' }, { text: 'three' }, { text: 'four' }, { text: 'five' })
    await chat.send('a')
    await chat.shows('user: a', 'assistant: one')
    await chat.send('b')
    await chat.shows('user: a', 'assistant: one', 'user: b', 'assistant: two')
    await chat.write('c')
    await chat.press('Edit', 2)
    await chat.shows('user: a', 'assistant: one', 'user: c', 'assistant: three')
    await chat.press('Regenerate', 3)
    await chat.shows('user: a', 'assistant: one', 'user: c', 'assistant: four')

    await chat.page.reload()
    await chat.shows('user: a', 'assistant: one', 'user: c', 'assistant: four')
    await chat.press('Branch 1', 3)
    await chat.shows('user: a', 'assistant: one', 'user: c', 'assistant: three')
    await chat.press('Branch 1', 2)
    await chat.shows('user: a', 'assistant: one', 'user: b', 'assistant: two')
    await chat.page.reload()
    await chat.send('d')
    await chat.shows('user: a', 'assistant: one', 'user: b', 'assistant: two', 'user: d', 'assistant: five')
    await chat.page.reload()
    // As it was left.
    await chat.press('Branch 2', 2)
    await chat.shows('user: a', 'assistant: one', 'user: c', 'assistant: three')
    expect([chat.posts, chat.runs()]).toEqual([5, Array(5).fill('completed')])
  })
})
