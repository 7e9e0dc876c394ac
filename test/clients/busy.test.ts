import { describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'
import { type Ai, headlessChat, textOf } from './headless-chat.ts'
import { versions } from './versions.ts'

const app = useApp()

/** Two pages of one conversation: in the first a reply is under way. */
async function twoPages(ai: Ai, whenBusy: string) {
  const id = crypto.randomUUID()
  const open = (body: object) => headlessChat(ai, { api: `${app.url}/v1/chat/echo`, key: app.key, id, body })
  const [one, two] = [open({}), open({ whenBusy })]
  const working = one.sendMessage({ text: '/slow 60\nend' })
  await one.kept.until(() => textOf(one.lastMessage).startsWith('1 2'))
  return { one, two, working }
}

describe.each(versions)('ai $version in a busy thread', ({ ai }) => {
  test.concurrent('a message that waits is no error, and its reply is found by resume', async () => {
    const { one, two, working } = await twoPages(ai, 'queue')
    await two.sendMessage({ text: '$ until test -e /tmp/go; do sleep 0.05; done\nsecond' })
    expect([two.status, two.error, two.messages.length]).toEqual(['ready', undefined, 1])
    await working
    expect(textOf(one.lastMessage)).toEndWith('60 end')
    const { sandboxId, threadId } = one.lastMessage!.metadata as { sandboxId: string; threadId: string }
    const thread = `/v1/sandboxes/${sandboxId}/threads/${threadId}`
    await until(async () => (await app.ask('GET', thread)).body.messages.length === 3)
    const resuming = two.resumeStream()
    await two.kept.until(() => two.lastMessage?.role === 'assistant')
    await app.shell(sandboxId, 'touch /tmp/go')
    await resuming
    expect(textOf(two.lastMessage)).toBe('second')
  })

  test.concurrent('a message that steers is no error, and the reply under way heeds it', async () => {
    const { one, two, working } = await twoPages(ai, 'steer')
    await two.sendMessage({ text: 'second' })
    expect([two.status, two.error, two.messages.length]).toEqual(['ready', undefined, 1])
    await working
    expect([one.status, textOf(one.lastMessage)]).toEqual(['ready', expect.stringMatching(/60 second\nend$/)])
  })
})
