import { Database } from 'bun:sqlite'
import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { say } from '../support/chat.ts'
import { useServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { dice, seed } from './random.ts'

// A killed server's spare is swept by the next start, which this may stop before.
const server = useServer({ flags: ['--spares', '0'] })
let sandboxId = ''
beforeAll(async () => {
  sandboxId = await server.sandbox()
  console.log(`seed ${seed}: THREADBOX_TEST_SEED=${seed} bun test test/faults/queue.test.ts`)
})

const roll = dice(seed)
/** The whole of what is sent takes about a second to run. */
const kills = Array.from({ length: 10 }, (_, index) => ({ index, afterMs: roll(1200) }))

describe.each(kills)('killed $afterMs ms after the first message ($index)', ({ afterMs }) => {
  test('no message that waits is lost, or run twice', async () => {
    const { body: thread } = await server.ask('POST', `/v1/sandboxes/${sandboxId}/threads`, {})
    const path = `/v1/sandboxes/${sandboxId}/threads/${thread.id}`
    const place = { sandboxId, threadId: thread.id, mode: 'background' }
    const send = async (id: string, whenBusy: string) => {
      const messages = [say(`/slow 3\n$ true\n${id}`, id)]
      const { status } = await server.ask('POST', '/v1/chat/echo', { ...place, messages, whenBusy })
      if (status === 202) answered.push(id)
    }
    const answered: string[] = []
    const sending = (async () => {
      for (const id of ['m1', 'm2', 'm3', 'm4']) await send(id, 'queue')
      for (const id of ['s1', 's2']) await send(id, 'steer')
    })().catch(() => {})
    await Bun.sleep(afterMs)
    await server.kill()
    await sending
    await server.start()

    // An interrupted turn stops the queue: someone says go, again and again.
    await until(async () => {
      const { queue, isStopped } = (await server.ask('GET', `${path}/queue`)).body
      if (isStopped) await server.ask('POST', `${path}/queue/resume`)
      return queue.length === 0 && (await server.ask('GET', path)).body.status !== 'streaming'
    })
    const { messages } = (await server.ask('GET', path)).body
    const said: string[] = messages.filter(({ role }: any) => role === 'user').map(({ id }: any) => id)
    expect(answered.filter(id => !said.includes(id))).toEqual([])
    expect(said).toEqual([...new Set(said)])
    expect(countRuns(thread.id)).toBe(said.length - countSteered(thread.id))
  })
})

const read = (sql: string, threadId: string): number => {
  using db = new Database(join(server.dataDirectory, 'threadbox.db'), { readonly: true })
  return db.query<{ count: number }, [string]>(sql).get(threadId)?.count ?? 0
}
const countRuns = (threadId: string) => read('select count(*) as count from runs where thread_id = ?', threadId)
const countSteered = (threadId: string) =>
  read(
    `select count(*) as count from run_chunks join runs on runs.id = run_id
     where thread_id = ? and chunk like '{"type":"steering-message"%'`,
    threadId,
  )
