import { expect, test } from 'bun:test'
import { say } from '../support/chat.ts'
import { useServer } from '../support/server.ts'
import { readEvents } from '../support/sse.ts'
import { dice, seed } from './random.ts'

// A killed server's spare is swept by the next start, which this may stop before.
const server = useServer({ flags: ['--spares', '0'] })
const roll = dice(seed)

/** A conversation as text: each message's id and words. */
const told = (messages: any[]): string[] => messages.map(({ id, content }) => `${id} ${content}`)

test('a server that is killed while it moves messages between branches loses no conversation', async () => {
  console.log(`seed ${seed}: THREADBOX_TEST_SEED=${seed} bun test test/faults/branches.test.ts`)
  const sandboxId = await server.sandbox()
  const first = await server.chat('begin', { sandboxId })
  const threadId = first.headers.get('x-thread-id')!
  await readEvents(first)
  const path = `/v1/sandboxes/${sandboxId}/threads/${threadId}`
  const read = async (query = ''): Promise<any> => {
    const { status, body } = await server.ask('GET', `${path}${query}`)
    if (status !== 200) throw new Error(JSON.stringify(body))
    return body
  }
  const all = async (): Promise<string[][]> => {
    const { branches } = await read('/branches')
    const found = [told((await read()).messages)]
    for (const { id } of branches) found.push(told((await read(`?branch=${id}`)).messages))
    return found
  }
  /** Edits, answers anew, goes on or switches, whatever comes. */
  const change = async (step: string): Promise<void> => {
    const { messages } = await read()
    const { branches } = await read('/branches')
    const questions = messages.filter(({ role }: any) => role === 'user')
    const { id } = questions[roll(questions.length) - 1]
    const kind = roll(4)
    if (kind === 1 && branches.length > 0) {
      await server.ask('PATCH', path, { branch: branches[roll(branches.length) - 1].id })
      return
    }
    const fields =
      kind === 2
        ? { trigger: 'regenerate-message', messageId: id, messages: [say('ignored')] }
        : kind === 3
          ? { messageId: id, messages: [say(step, id)] }
          : { messages: [say(step)] }
    await (await server.request('POST', '/v1/chat/echo', { body: { sandboxId, threadId, ...fields } })).text()
  }

  for (let round = 0; round < 12; round++) {
    for (let step = 0; step < 3; step++) await change(`round ${round} step ${step}`)
    const before = await all()
    const killed = change(`round ${round} killed`).catch(() => {})
    await Bun.sleep(roll(30))
    await server.kill()
    await killed
    await server.start()
    const after = await all()
    for (const one of before) {
      // One that is shown may have gone on.
      const isThere = after.some(other => Bun.deepEquals(other.slice(0, one.length), one))
      expect(isThere ? [] : one).toEqual([])
    }
    for (const one of after) expect(new Set(one.map(line => line.split(' ')[0])).size).toBe(one.length)
    expect(after.length - before.length).toBeLessThanOrEqual(2)
  }
})
