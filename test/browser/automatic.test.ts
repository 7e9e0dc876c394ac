import { describe, expect, test } from 'bun:test'
import { bash, useAgentServer } from '../support/agent-server.ts'
import type { ModelTurn } from '../support/model-server.ts'
import { useBrowser } from './browser.ts'
import { aiProfiles } from './pages.ts'
import { useScene } from './scene.ts'

const agentServer = useAgentServer()
const { model } = agentServer
const scene = useScene(agentServer, useBrowser())

describe.each(aiProfiles)('%s in Chromium that sends automatically, with the stream %s', (version, stream) => {
  const look = { calls: [bash('echo 1')] }
  const turns: [string, ModelTurn[], string][] = [
    ['text around it', [{ text: 'I look.', ...look }, { text: 'So.' }], 'I look. [Bash output-available: 1] So.'],
    ['no text', [look, { text: '' }], '[Bash output-available: 1]'],
    [
      'another one after it',
      [look, look, { text: 'So.' }],
      '[Bash output-available: 1] [Bash output-available: 1] So.',
    ],
  ]
  test.each(turns)('a turn that uses a tool with %s is one post and one run', async (_, script, said) => {
    const chat = await scene(version, { body: { stream }, automatic: 'tools' })
    model.play(...script)
    await chat.send('Look.')
    await chat.shows('user: Look.', `assistant: ${said}`)
    await chat.page.reload()
    await chat.shows('user: Look.', `assistant: ${said}`)
    model.play({ text: 'Yes.' })
    await chat.send('Sure?')
    await chat.shows('user: Look.', `assistant: ${said}`, 'user: Sure?', 'assistant: Yes.')
    expect([chat.posts, chat.runs()]).toEqual([2, ['completed', 'completed']])
  })

  test('a turn that fails after a tool is one post and one run', async () => {
    const chat = await scene(version, { body: { stream }, automatic: 'tools' })
    model.play({ calls: [bash('echo 1')] }, { status: 401, message: 'no' })
    await chat.send('Look.')
    await chat.fails('The model answered 401: no', 'user: Look.', 'assistant: [Bash output-available: 1]')
    model.play({ text: 'Yes.' })
    await chat.send('Sure?')
    await chat.shows('user: Look.', 'assistant: [Bash output-available: 1]', 'user: Sure?', 'assistant: Yes.')
    expect([chat.posts, chat.runs()]).toEqual([2, ['failed', 'completed']])
  })
})
