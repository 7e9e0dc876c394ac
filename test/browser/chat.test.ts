import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bash, useAgentServer } from '../support/agent-server.ts'
import type { ModelTurn } from '../support/model-server.ts'
import { useBrowser } from './browser.ts'
import { aiVersions } from './pages.ts'
import { gated, useScene } from './scene.ts'

const agentServer = useAgentServer()
const { model } = agentServer
const scene = useScene(agentServer, useBrowser())

test('the page has types', async () => {
  const tsc = Bun.spawn([process.execPath, 'node_modules/typescript/bin/tsc', '-p', import.meta.dir], {
    cwd: join(import.meta.dir, '../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  expect([await tsc.stdout.text(), await tsc.exited]).toEqual(['', 0])
})

describe.each(aiVersions)('%s in Chromium', version => {
  test('a reply is shown while it comes, and so is the next one', async () => {
    const chat = await scene(version)
    const last = gated({ text: 'It is 42.' })
    model.play({ text: 'I look.', calls: [bash('echo $((6 * 7))')] }, last.turn)
    await chat.send('What is it?')
    await chat.showsSoFar('user: What is it?', 'assistant: I look. [Bash output-available: 42]')
    last.open()
    const first = ['user: What is it?', 'assistant: I look. [Bash output-available: 42] It is 42.']
    await chat.shows(...first)
    model.play({ text: 'Bye.' })
    await chat.send('Thanks.')
    await chat.shows(...first, 'user: Thanks.', 'assistant: Bye.')
    expect([chat.posts, chat.runs()]).toEqual([2, ['completed', 'completed']])
  })

  test('a reload in mid-run shows one message, whole, and so does one after the run', async () => {
    const chat = await scene(version)
    const [middle, last] = [gated({ calls: [bash('echo two')] }), gated({ text: 'Done.' })]
    model.play({ text: 'I work.', calls: [bash('echo one')] }, middle.turn, last.turn)
    await chat.send('Work.')
    await chat.showsSoFar('user: Work.', 'assistant: I work. [Bash output-available: one]')
    await chat.page.reload()
    await chat.showsSoFar('user: Work.', 'assistant: I work. [Bash output-available: one]')
    middle.open()
    const so = 'assistant: I work. [Bash output-available: one] [Bash output-available: two]'
    await chat.showsSoFar('user: Work.', so)
    await chat.page.reload()
    await chat.showsSoFar('user: Work.', so)
    last.open()
    await chat.shows('user: Work.', `${so} Done.`)
    await chat.page.reload()
    await chat.shows('user: Work.', `${so} Done.`)
    model.play({ text: 'Again.' })
    await chat.send('Then?')
    await chat.shows('user: Work.', `${so} Done.`, 'user: Then?', 'assistant: Again.')
    expect([chat.posts, chat.runs()]).toEqual([2, ['completed', 'completed']])
  })

  test('a reply made anew and an edited message take the place of what was there, over a reload too', async () => {
    const chat = await scene(version)
    model.play({ text: 'one' }, { text: 'two' }, { text: 'three' }, { text: 'four' }, { text: 'five' })
    await chat.send('a')
    await chat.shows('user: a', 'assistant: one')
    await chat.send('b')
    await chat.shows('user: a', 'assistant: one', 'user: b', 'assistant: two')
    await chat.press('Regenerate', 3)
    await chat.shows('user: a', 'assistant: one', 'user: b', 'assistant: three')
    await chat.page.reload()
    await chat.shows('user: a', 'assistant: one', 'user: b', 'assistant: three')
    await chat.write('c')
    await chat.press('Edit', 2)
    await chat.shows('user: a', 'assistant: one', 'user: c', 'assistant: four')
    await chat.press('Regenerate', 1)
    await chat.shows('user: a', 'assistant: five')
    await chat.page.reload()
    await chat.shows('user: a', 'assistant: five')
    expect([chat.posts, chat.runs().filter(status => status !== 'completed')]).toEqual([5, []])
  })

  test('a reply that is stopped stays as it was, and the next message is answered', async () => {
    const chat = await scene(version)
    model.play({ text: 'I sleep.', calls: [bash('sleep 600')] })
    await chat.send('Sleep.')
    await chat.showsSoFar('user: Sleep.', 'assistant: I sleep. [Bash input-available]')
    await chat.press('Stop')
    const stopped = ['user: Sleep.', 'assistant: I sleep. [Bash output-error: cancelled]']
    await chat.shows(...stopped)
    model.play({ text: 'Good morning.' })
    await chat.send('Wake up.')
    await chat.shows(...stopped, 'user: Wake up.', 'assistant: Good morning.')
    expect([chat.posts, chat.runs()]).toEqual([2, ['cancelled', 'completed']])
  })

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
  test.each(turns)(
    'sent automatically, a turn that uses a tool with %s is one post and one run',
    async (_, script, said) => {
      const chat = await scene(version, { automatic: 'tools' })
      model.play(...script)
      await chat.send('Look.')
      await chat.shows('user: Look.', `assistant: ${said}`)
      await chat.page.reload()
      await chat.shows('user: Look.', `assistant: ${said}`)
      model.play({ text: 'Yes.' })
      await chat.send('Sure?')
      await chat.shows('user: Look.', `assistant: ${said}`, 'user: Sure?', 'assistant: Yes.')
      expect([chat.posts, chat.runs()]).toEqual([2, ['completed', 'completed']])
    },
  )

  test('sent automatically, a turn that fails after a tool is one post and one run', async () => {
    const chat = await scene(version, { automatic: 'tools' })
    model.play({ calls: [bash('echo 1')] }, { status: 401, message: 'no' })
    await chat.send('Look.')
    await chat.fails('The model answered 401: no', 'user: Look.', 'assistant: [Bash output-available: 1]')
    model.play({ text: 'Yes.' })
    await chat.send('Sure?')
    await chat.shows('user: Look.', 'assistant: [Bash output-available: 1]', 'user: Sure?', 'assistant: Yes.')
    expect([chat.posts, chat.runs()]).toEqual([2, ['failed', 'completed']])
  })
})
