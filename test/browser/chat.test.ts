import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bash, useAgentServer } from '../support/agent-server.ts'
import { useBrowser } from './browser.ts'
import { aiProfiles } from './pages.ts'
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

describe.each(aiProfiles)('%s in Chromium, with the stream %s', (version, stream) => {
  test('a reply is shown while it comes, and so is the next one', async () => {
    const chat = await scene(version, { body: { stream } })
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
    const { messages } = await chat.thread()
    // In the contract profile only the metadata have the id of a reply.
    const isTold = stream !== 'contract'
    expect(messages.map(({ id }: any) => id).filter((_: string, index: number) => isTold || index % 2 === 0)).toEqual(
      (await chat.messageIds()).filter((_, index) => isTold || index % 2 === 0),
    )
  })

  test('a reload in mid-run shows one message, whole, and so does one after the run', async () => {
    const chat = await scene(version, { body: { stream } })
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
    const chat = await scene(version, { body: { stream } })
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
    const chat = await scene(version, { body: { stream } })
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
})
