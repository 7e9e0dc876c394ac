import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { chat, contents, say, startChat } from '../support/chat.ts'
import { readChunks, textIn } from '../support/sse.ts'

const app = useApp()
let sandboxId = ''
beforeAll(async () => {
  sandboxId = await app.sandbox()
})

interface Place {
  sandboxId: string
  threadId: string
}
const pathOf = ({ threadId }: Place, query = '') => `/v1/sandboxes/${sandboxId}/threads/${threadId}${query}`
const messagesOf = async (place: Place, query = ''): Promise<any[]> => {
  const { status, body } = await app.ask('GET', pathOf(place, query))
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body.messages
}
const branch = (place: Place, id: string) => messagesOf(place, `?branch=${id}`)
const switchTo = (place: Place, id: string) => app.ask('PATCH', pathOf(place), { branch: id })
const texts = (messages: any[]): string[] => messages.map(({ role, content }) => `${role}: ${content}`)
const turn = (...words: string[]) => words.flatMap(word => [`user: ${word}`, `assistant: ${word}`])

/** A thread with questions m1, m2 and m3, and their answers. */
async function threeTurns(): Promise<Place> {
  const { threadId } = await chat(app, '', { sandboxId, messages: [say('one', 'm1')] })
  const place = { sandboxId, threadId }
  await chat(app, '', { ...place, messages: [say('two', 'm2')] })
  await chat(app, '', { ...place, messages: [say('three', 'm3')] })
  return place
}
const edit = (place: Place, messageId: string, text: string) =>
  chat(app, '', { ...place, messageId, messages: [say(text, messageId)] })
const regenerate = (place: Place, messageId: string) =>
  chat(app, '', { ...place, messageId, trigger: 'regenerate-message', messages: [say('ignored')] })

describe('an edit', () => {
  test('keeps what was there as a branch, with the message under the same id', async () => {
    const place = await threeTurns()
    const before = await messagesOf(place)
    expect(before.some(message => 'branch' in message || 'branches' in message)).toBe(false)
    await edit(place, 'm2', 'second')
    const after = await messagesOf(place)
    expect(texts(after)).toEqual(turn('one', 'second'))
    const [old, active] = after[2].branches
    expect([after[2].id, after[2].branch, after[2].branches]).toEqual(['m2', active, [old, active]])
    expect(after.filter(message => message.branches)).toHaveLength(1)
    const kept = await branch(place, old)
    expect(kept.map(({ branch, branches, ...message }) => message)).toEqual(before)
    expect([kept[2].branch, kept[2].branches]).toEqual([old, [old, active]])
    expect(await branch(place, active)).toEqual(after)
  })

  test('of the first message keeps the whole conversation', async () => {
    const place = await threeTurns()
    await edit(place, 'm1', 'first')
    const [message] = await messagesOf(place)
    expect(texts(await branch(place, message.branches[0]))).toEqual(turn('one', 'two', 'three'))
  })

  test('that is refused changes nothing', async () => {
    const place = await threeTurns()
    app.beside(db => db.run("create trigger refuse before insert on runs begin select raise(abort, 'no'); end"))
    try {
      const body = { ...place, messageId: 'm1', messages: [say('first', 'm1')] }
      expect((await app.ask('POST', '/v1/chat/echo', body)).status).toBe(500)
    } finally {
      app.beside(db => db.run('drop trigger refuse'))
    }
    const messages = await messagesOf(place)
    expect(texts(messages)).toEqual(turn('one', 'two', 'three'))
    expect(messages.some(message => message.branches)).toBe(false)
  })
})

test('a reply that is made anew stands beside all that came before it, the oldest first', async () => {
  const place = await threeTurns()
  const replies = [(await messagesOf(place))[1].id]
  for (let i = 0; i < 3; i++) {
    await regenerate(place, 'm1')
    replies.push((await messagesOf(place))[1].id)
  }
  const [, reply] = await messagesOf(place)
  expect(reply.branches).toHaveLength(4)
  expect(reply.branch).toBe(reply.branches[3])
  for (const [index, id] of reply.branches.entries()) {
    const [, shown] = await branch(place, id)
    expect(shown).toMatchObject({ id: replies[index], branch: id, branches: reply.branches })
  }
  expect(texts(await branch(place, reply.branches[0]))).toEqual(turn('one', 'two', 'three'))
})

describe('a page', () => {
  test('of a branch goes on through what it shares, by limit and before', async () => {
    const place = await threeTurns()
    await edit(place, 'm3', 'third')
    await edit(place, 'm2', 'second')
    const old = (await messagesOf(place))[2].branches[0]
    const deeper = (await branch(place, old))[4].branches[0]
    const whole = await branch(place, deeper)
    expect(texts(whole)).toEqual(turn('one', 'two', 'three'))
    for (const limit of [1, 2, 3, 4, 6, 9]) {
      const paged = []
      for (let before = ''; ; ) {
        const { body } = await app.ask('GET', pathOf(place, `?branch=${deeper}&limit=${limit}${before}`))
        paged.unshift(...body.messages)
        expect(body.messages.length).toBeLessThanOrEqual(limit)
        if (body.nextBefore === null) break
        before = `&before=${body.nextBefore}`
      }
      expect(paged).toEqual(whole)
    }
    const wrong = await app.ask('GET', pathOf(place, `?branch=${deeper}&before=unknown`))
    expect([wrong.status, wrong.body.error.field]).toEqual([400, 'before'])
  })

  test('of a thread tells branches too', async () => {
    const place = await threeTurns()
    await edit(place, 'm3', 'third')
    const [message] = await messagesOf(place, '?limit=2')
    expect([message.id, message.branches.length]).toEqual(['m3', 2])
  })
})

describe('a switch', () => {
  test('shows the branch and goes on there, and what was shown is a branch', async () => {
    const place = await threeTurns()
    await edit(place, 'm2', 'second')
    const [old, newer] = (await messagesOf(place))[2].branches
    const { status, body } = await switchTo(place, old)
    expect([status, body.id, body.status]).toEqual([200, place.threadId, 'completed'])
    expect(texts(await messagesOf(place))).toEqual(turn('one', 'two', 'three'))
    const { chunks } = await chat(app, 'four', place)
    expect(textIn(chunks)).toBe('four')
    const shown = await messagesOf(place)
    expect(texts(shown)).toEqual(turn('one', 'two', 'three', 'four'))
    expect([shown[2].branch, shown[2].branches]).toEqual([old, [old, newer]])
    expect(texts(await branch(place, newer))).toEqual(turn('one', 'second'))
    // The one that is shown already.
    expect((await switchTo(place, old)).status).toBe(200)
    expect(await messagesOf(place)).toEqual(shown)
  })

  test('gives the engine the conversation of the branch, without its session', async () => {
    const place = await threeTurns()
    await edit(place, 'm1', 'first')
    const old = (await messagesOf(place))[0].branches[0]
    app.beside(db => db.run("update threads set engine_session_id = 's' where id = ?", [place.threadId]))
    await switchTo(place, old)
    const session = app.beside(db =>
      db.query('select engine_session_id as id from threads where id = ?').get(place.threadId),
    )
    expect(session).toEqual({ id: null })
    const { chunks } = await chat(app, 'four', place)
    // The echo engine counts the words of all that it is given.
    expect(chunks.find(({ type }) => type === 'message-metadata').messageMetadata.inputTokens).toBe(7)
  })

  test('is refused during a reply, and for what is no branch of the thread', async () => {
    const place = await threeTurns()
    await edit(place, 'm3', 'third')
    const [old] = (await messagesOf(place))[4].branches
    const other = await threeTurns()
    await edit(other, 'm3', 'third')
    for (const [id, where] of [
      ['unknown', place],
      [old, other],
    ] as const) {
      for (const refused of [await switchTo(where, id), await app.ask('GET', pathOf(where, `?branch=${id}`))])
        expect([refused.status, refused.body.error.code]).toEqual([404, 'branch_not_found'])
      expect((await app.ask('GET', pathOf(where, `?limit=1&branch=${id}`))).status).toBe(404)
    }
    const { response } = await startChat(app, '/slow 1000', place)
    const busy = await switchTo(place, old)
    expect([busy.status, busy.body.error.code]).toEqual([409, 'run_active'])
    await app.ask('DELETE', `/v1/chat/echo/${sandboxId}/stream?threadId=${place.threadId}`)
    await readChunks(response)
    expect((await switchTo(place, old)).status).toBe(200)
    expect(texts(await messagesOf(place))).toEqual(turn('one', 'two', 'three'))
  })

  test('is refused while a reply waits for answers', async () => {
    const place = await threeTurns()
    await edit(place, 'm3', 'third')
    const { branches } = (await app.ask('GET', pathOf(place, '/branches'))).body
    app.beside(db => db.run("update threads set status = 'waiting' where id = ?", [place.threadId]))
    const { status, body } = await switchTo(place, branches[0].id)
    expect([status, body.error.code]).toEqual([409, 'conflict'])
    expect(texts(await messagesOf(place))).toEqual(turn('one', 'two', 'third'))
  })

  test('without a body that says so changes nothing', async () => {
    const place = await threeTurns()
    const before = (await app.ask('GET', pathOf(place))).body
    expect((await app.ask('PATCH', pathOf(place), {})).status).toBe(200)
    expect((await app.ask('GET', pathOf(place))).body).toEqual(before)
  })
})

test('a new reply that ends before its first word hides no earlier one', async () => {
  const place = await threeTurns()
  const list = async () => (await app.ask('GET', pathOf(place, '/branches'))).body
  expect(await list()).toEqual({ branches: [], nextBefore: null })
  const { id } = (await messagesOf(place))[5]
  await regenerate(place, 'm3')
  // As when it was cancelled at once: the thread ends with its question.
  app.beside(db => db.run('delete from messages where thread_id = ? and position = 6', [place.threadId]))
  const [old, active] = (await list()).branches
  expect(old).toEqual({ id: old.id, isActive: false, parentId: null, afterMessageId: 'm3', firstMessageId: id })
  expect(active).toMatchObject({ isActive: true, firstMessageId: null })
  expect(texts(await branch(place, old.id))).toEqual(turn('one', 'two', 'three'))
  expect((await switchTo(place, old.id)).status).toBe(200)
  expect(texts(await messagesOf(place))).toEqual(turn('one', 'two', 'three'))
  // All of what was shown is in what is shown now.
  expect((await list()).branches).toMatchObject([{ id: old.id, isActive: true }])
})

test('at any depth and in any order, every conversation that there was is kept whole', async () => {
  let seed = 12
  const random = (below: number) => {
    seed = (seed * 48271) % 2147483647
    return seed % below
  }
  const { threadId } = await chat(app, 'begin', { sandboxId })
  const place = { sandboxId, threadId }
  const told = (messages: any[]) => messages.map(({ id, content }) => `${id} ${content}`)
  /** All conversations, by what was told in them. */
  let expected = [told(await messagesOf(place))]
  const crawl = async () => {
    const found = new Map<string, any[]>()
    const queue = [...new Set((await messagesOf(place)).flatMap(({ branches = [] }) => branches))]
    for (const id of queue) {
      if (found.has(id)) continue
      const messages = await branch(place, id)
      found.set(id, messages)
      queue.push(...messages.flatMap(({ branches = [] }) => branches))
    }
    return found
  }
  for (let step = 0; step < 40; step++) {
    const shown = await messagesOf(place)
    const now = told(shown)
    const what = random(4)
    const questions = shown.filter(({ role }) => role === 'user')
    const { id } = questions[random(questions.length)]
    if (what === 0) {
      await chat(app, `step ${step}`, place)
      expected = expected.filter(one => !Bun.deepEquals(one, now))
    } else if (what === 1) await edit(place, id, `step ${step}`)
    else if (what === 2) await regenerate(place, id)
    else {
      const ids = [...(await crawl()).keys()]
      const chosen = ids[random(ids.length || 1)]
      if (chosen === undefined) continue
      const wanted = await branch(place, chosen)
      expect((await switchTo(place, chosen)).status).toBe(200)
      expect(told(await messagesOf(place))).toEqual(told(wanted))
      continue
    }
    expected.push(told(await messagesOf(place)))
  }
  const found = await crawl()
  const sorted = (all: string[][]) => all.map(one => one.join('\n')).sort()
  expect(expected.length).toBeGreaterThan(15)
  expect(sorted([...found.values()].map(told))).toEqual(sorted(expected))
  for (const messages of found.values()) {
    for (const [index, { branches = [], branch: own }] of messages.entries()) {
      const beginning = told(messages.slice(0, index))
      const same = expected.filter(one => Bun.deepEquals(one.slice(0, index), beginning) && one.length > index)
      // With the same beginning, each that goes on differently from here is told once.
      const options = new Set(same.map(one => one[index]))
      const toldOf = branches.map((id: string) => told(found.get(id)!)[index])
      expect(toldOf.toSorted()).toEqual(branches.length > 0 ? [...options].toSorted() : [])
      if (options.size > 1) expect(branches).toContain(own)
    }
  }
})

test('a search finds what a thread shows', async () => {
  const place = await threeTurns()
  const found = async (word: string) => {
    const { body } = await app.ask('GET', `/v1/threads?q=${word}&sandboxId=${sandboxId}`)
    return body.threads.some(({ id }: any) => id === place.threadId)
  }
  await edit(place, 'm3', 'zebra')
  await edit(place, 'm3', 'giraffe')
  expect([await found('zebra'), await found('giraffe')]).toEqual([false, true])
  const { branches } = (await app.ask('GET', pathOf(place, '/branches'))).body
  await switchTo(place, branches[1].id)
  expect([await found('zebra'), await found('giraffe')]).toEqual([true, false])
})

test('the oldest go when there are more than a hundred', async () => {
  const place = await threeTurns()
  for (let i = 0; i < 105; i++) await edit(place, 'm1', `edit ${i}`)
  const [message] = await messagesOf(place)
  expect(message.branches).toHaveLength(101)
  expect(texts(await branch(place, message.branches[0]))).toEqual(turn('edit 4'))
  const rows = app.beside(db =>
    db
      .query(
        'select count(*) as count from branch_messages join branches on branches.id = branch_id where thread_id = ?',
      )
      .get(place.threadId),
  )
  expect(rows).toEqual({ count: 200 })
})

test('the oldest go when they are longer than 64 MB together, but the last one never', async () => {
  const place = await threeTurns()
  await edit(place, 'm1', 'second')
  const [small] = (await messagesOf(place))[0].branches
  app.beside(db =>
    db.run(
      `update messages set parts = json_array(json_object('type', 'text', 'text', hex(zeroblob(34000000))))
       where thread_id = ? and id = 'm1'`,
      [place.threadId],
    ),
  )
  await edit(place, 'm1', 'third')
  const [message] = await messagesOf(place)
  expect(message.branches).toHaveLength(2)
  expect(message.branches).not.toContain(small)
})

test('a thread that shows another branch while it is read does not look whole', async () => {
  const place = await threeTurns()
  await edit(place, 'm1', 'first')
  app.beside(db =>
    db.run(
      `with recursive n (i) as (select 3 union all select i + 1 from n where i < 20000)
       insert into messages (thread_id, id, position, role, parts, created_at)
       select ?, 'n' || i, i, 'user', json_array(json_object('type', 'text', 'text', hex(zeroblob(100)))), '2026-01-01T00:00:00.000Z' from n`,
      [place.threadId],
    ),
  )
  const { branches } = (await app.ask('GET', pathOf(place, '/branches'))).body
  const response = await app.request('GET', pathOf(place))
  const reader = response.body!.getReader()
  await reader.read()
  expect((await switchTo(place, branches[0].id)).status).toBe(200)
  const rest = async () => {
    for (;;) if ((await reader.read()).done) return 'whole'
  }
  await expect(rest()).rejects.toThrow()
})

test('they go with their thread, and what they have used stays counted until then', async () => {
  const place = await threeTurns()
  const { usage } = (await app.ask('GET', pathOf(place))).body
  await edit(place, 'm1', 'first')
  const after = (await app.ask('GET', pathOf(place))).body.usage
  expect(after.totalTokens).toBe(usage.totalTokens + 2)
  await app.ask('DELETE', pathOf(place))
  const left = (table: string, column: string) =>
    app.beside(db => db.query(`select count(*) as count from ${table} where ${column} = ?`).get(place.threadId))
  expect(left('branches', 'thread_id')).toEqual({ count: 0 })
  expect(left('messages', 'thread_id')).toEqual({ count: 0 })
  expect(
    app.beside(db =>
      db.query('select count(*) as count from branch_messages where branch_id not in (select id from branches)').get(),
    ),
  ).toEqual({ count: 0 })
})

test('another user’s token can neither read nor switch them', async () => {
  const place = await threeTurns()
  await edit(place, 'm1', 'first')
  const [{ branches }] = (await messagesOf(place)) as any
  const { body } = await app.ask('POST', '/v1/tokens', { agent: 'echo', userId: 'stranger' })
  const as = { key: body.token }
  expect((await app.ask('GET', pathOf(place, `?branch=${branches[0]}`), undefined, as)).status).toBe(404)
  expect((await app.ask('PATCH', pathOf(place), { branch: branches[0] }, as)).status).toBe(404)
  expect(await contents(app, place)).toEqual(turn('first'))
})
