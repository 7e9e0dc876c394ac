import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { cancel, chat, say, startChat } from '../support/chat.ts'

const app = useApp()
const find = async (query: Record<string, string> = {}, key = app.key): Promise<string[]> => {
  const { status, body } = await app.ask('GET', `/v1/threads?${new URLSearchParams(query)}`, undefined, { key })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body.threads.map((thread: any) => thread.id)
}
const tokenFor = async (fields: object): Promise<string> => (await app.ask('POST', '/v1/tokens', fields)).body.token

/** A thread that has these messages, each with an answer of the same words. */
async function said(sandboxId: string, text: string, fields: object = {}): Promise<string> {
  return (await chat(app, text, { sandboxId, ...fields })).threadId
}

describe('the list', () => {
  let [mine, other] = ['', '']
  let [a, b, c] = ['', '', '']
  beforeAll(async () => {
    app.agent('second')
    mine = await app.sandbox()
    other = await app.sandbox({ agent: 'second', externalUserId: 'u1' })
    a = await said(mine, 'one')
    b = await said(other, 'two\n/fail', { externalUserId: 'u1' })
    c = (await app.ask('POST', `/v1/sandboxes/${mine}/threads`, { name: 'Empty', externalUserId: 'u1' })).body.id
  })

  test('has the threads of all sandboxes, newest first, with what a page shows', async () => {
    const { body } = await app.ask('GET', '/v1/threads')
    expect(body.nextBefore).toBeNull()
    expect(body.threads.map((thread: any) => thread.id)).toEqual([c, b, a])
    expect(body.threads[1]).toEqual({
      id: b,
      sandboxId: other,
      agent: { slug: 'second', name: 'second' },
      name: 'two',
      status: 'error',
      error: 'The echo engine fails because it was asked to.',
      externalUserId: 'u1',
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      completedAt: expect.any(String),
    })
  })

  test('has those for which all that is asked holds', async () => {
    expect(await find({ agent: 'second' })).toEqual([b])
    expect(await find({ sandboxId: mine })).toEqual([c, a])
    expect(await find({ userId: 'u1' })).toEqual([c, b])
    expect(await find({ status: 'error' })).toEqual([b])
    expect(await find({ status: 'active', userId: 'u1' })).toEqual([c])
    expect(await find({ status: 'active', userId: 'u1', agent: 'second' })).toEqual([])
    expect(await find({ sandboxId: 'sbx_none' })).toEqual([])
    const environmentId = (await app.ask('GET', `/v1/sandboxes/${other}`)).body.sandboxId
    expect(await find({ sandboxId: environmentId })).toEqual([b])
    expect((await app.ask('GET', '/v1/threads?status=odd')).status).toBe(400)
    expect((await app.ask('GET', '/v1/threads?limit=0')).status).toBe(400)
  })

  test('comes in pages, and goes on behind a thread that was deleted', async () => {
    const first = (await app.ask('GET', '/v1/threads?limit=2')).body
    expect(first.threads.map((thread: any) => thread.id)).toEqual([c, b])
    expect(first.nextBefore).toBe(b)
    expect(await find({ limit: '2', before: b })).toEqual([a])
    const gone = (await app.ask('POST', `/v1/sandboxes/${mine}/threads`)).body.id
    await app.ask('DELETE', `/v1/sandboxes/${mine}/threads/${gone}`)
    expect(await find({ before: gone })).toEqual([c, b, a])
    expect(await find({ before: gone, q: 'o' })).toEqual([a])
  })

  test('of another team, another agent or another user is not shown: regression', async () => {
    expect(await find({}, app.foreignKey)).toEqual([])
    expect(await find({ sandboxId: mine }, app.foreignKey)).toEqual([])
    expect(await find({ q: 'one' }, app.foreignKey)).toEqual([])
    const ofAgent = await tokenFor({ agents: ['second'] })
    expect(await find({}, ofAgent)).toEqual([b])
    expect(await find({ agent: 'echo' }, ofAgent)).toEqual([])
    expect(await find({ q: 'one' }, ofAgent)).toEqual([])
    const ofBoth = await tokenFor({ agents: ['second', 'echo'] })
    expect(await find({}, ofBoth)).toEqual([c, b, a])
    expect(await find({ q: 'one' }, ofBoth)).toEqual([a])
    const ofUser = await tokenFor({ userId: 'u1' })
    // The sandbox of the other thread is not the user's: the thread cannot be opened.
    expect(await find({}, ofUser)).toEqual([b])
    expect(await find({ userId: 'u2' }, ofUser)).toEqual([])
    expect(await find({ q: 'two' }, ofUser)).toEqual([b])
    expect(await find({ q: 'one' }, ofUser)).toEqual([])
    expect(await find({}, await tokenFor({ userId: 'u2' }))).toEqual([])
  })
})

describe('a search', () => {
  let sandbox = ''
  beforeAll(async () => {
    sandbox = await app.sandbox()
  })
  const search = (q: string, more: Record<string, string> = {}) => find({ q, sandboxId: sandbox, ...more })

  test('finds words in any order, case and accents aside, the last by its beginning', async () => {
    const [quick, slow] = [await said(sandbox, 'The quick brown Fox jumps'), await said(sandbox, 'Le café est brûlé')]
    expect(await search('fox quick')).toEqual([quick])
    expect(await search('qui')).toEqual([quick])
    expect(await search('qui fox')).toEqual([])
    expect(await search('CAFE BRULE')).toEqual([slow])
    expect(await search('brûl')).toEqual([slow])
    expect(await search('brown-fo')).toEqual([quick])
    expect(await search('fox café')).toEqual([])
    expect(await search('the', { status: 'completed' })).toEqual([quick])
    expect(await search('the', { status: 'error' })).toEqual([])
  })

  test('finds words of any script by their beginning, as they are written', async () => {
    const texts = ['мой код', 'мои слова', 'ガイド', 'カメラ', 'ΐδιος', 'ιδιος', 'ǡbc', 'abc', '한국어', 'हिन्दी भाषा']
    const threads = []
    for (const text of texts) threads.push(await said(sandbox, text))
    for (const [index, text] of texts.entries()) {
      const [word = ''] = text.split(' ')
      expect([word, await search(word)]).toEqual([word, [threads[index]!]])
      const part = word.slice(0, -1)
      expect([part, (await search(part)).includes(threads[index]!)]).toEqual([part, true])
    }
    expect(await search('МОЙ')).toEqual([threads[0]!])
    expect(await search('\u0301')).toEqual([])
  })

  test('finds a thread once, newest first, in pages', async () => {
    const made = []
    for (let index = 0; index < 3; index++) made.unshift(await said(sandbox, 'pagedword one'))
    await chat(app, 'pagedword again', { sandboxId: sandbox, threadId: made[1]! })
    expect(await search('pagedword')).toEqual(made)
    const { body } = await app.ask('GET', `/v1/threads?q=pagedword&limit=2`)
    expect(body.threads.map((thread: any) => thread.id)).toEqual(made.slice(0, 2))
    expect(await search('pagedword', { limit: '2', before: body.nextBefore })).toEqual(made.slice(2))
  })

  test('finds a word’s beginning among more words than are looked up one by one', async () => {
    const text = Array.from({ length: 300 }, (_, index) => `zebra${index}x`).join(' ')
    const many = await said(sandbox, text)
    expect(await search('zebra')).toEqual([many])
    expect(await search('zebra29')).toEqual([many])
    expect(await search('zebra300')).toEqual([])
  })

  test('finds what the agent said, and not what the system said', async () => {
    const answered = await said(sandbox, 'answerword')
    app.beside(db => db.run("delete from messages where thread_id = ? and role = 'user'", [answered]))
    expect(await search('answerword')).toEqual([answered])
    const system = { role: 'system', parts: [{ type: 'text', text: 'systemword' }] }
    const hidden = await chat(app, '', { sandboxId: sandbox, messages: [system, say('visibleword')] })
    expect(await search('visibleword')).toEqual([hidden.threadId])
    expect(await search('systemword')).toEqual([])
  })

  const odd = [
    '"',
    "'",
    '*',
    '(',
    ')',
    'a OR',
    'AND',
    'NOT x',
    'NEAR(a b)',
    'text:a',
    'a^2',
    '{a',
    '-a',
    '+',
    'a"b',
    '\u0000',
    'a\u0000b',
    ':',
    '\\',
    '%',
    '\ud800',
    '\u{E000}t',
    '🙂',
    'ﬁ',
    'x'.repeat(1000),
    'a '.repeat(500),
  ]
  test.each(odd)('of %j is no error', async q => {
    const { status, body } = await app.ask('GET', `/v1/threads?q=${encodeURIComponent(q.toWellFormed())}`)
    expect([status, Array.isArray(body.threads)]).toEqual([200, true])
  })

  test('of signs alone finds nothing, of nothing lists all, and of too much is refused', async () => {
    expect(await search('!?')).toEqual([])
    expect(await search(' ')).toEqual(await find({ sandboxId: sandbox }))
    expect((await app.ask('GET', `/v1/threads?q=${'x'.repeat(1001)}`)).status).toBe(400)
  })

  test('of the words that scopes have in the index finds nothing: regression', async () => {
    const scope = `\u{E000}t${Buffer.from('team').toString('hex')}`
    const thread = await said(sandbox, `forged ${scope}`)
    expect(await find({ q: 'forged' }, app.foreignKey)).toEqual([])
    expect(await search('forged')).toEqual([thread])
  })

  test('follows edits and deletes', async () => {
    const first = await chat(app, '', { sandboxId: sandbox, messages: [say('beforeword', 'm1')] })
    const place = { sandboxId: sandbox, threadId: first.threadId }
    expect(await search('beforeword')).toEqual([first.threadId])
    await chat(app, '', { ...place, messages: [say('afterword', 'm1')], messageId: 'm1' })
    expect(await search('afterword')).toEqual([first.threadId])
    app.beside(db => db.run('delete from messages where thread_id = ?', [first.threadId]))
    expect(await search('afterword')).toEqual([])
    const again = await said(sandbox, 'goneword')
    await app.ask('DELETE', `/v1/sandboxes/${sandbox}/threads/${again}`)
    expect(await search('goneword')).toEqual([])
    // The next thread may take over the number of the one that is gone.
    const next = await said(sandbox, 'nextword')
    expect(await search('nextword')).toEqual([next])
    expect(await search('goneword')).toEqual([])
  })

  test('has a message as soon as its run has begun', async () => {
    const { threadId, response } = await startChat(app, 'earlyword\n/slow 1000', { sandboxId: sandbox })
    expect(await search('earlyword')).toEqual([threadId])
    expect(await search('earlyword', { status: 'streaming' })).toEqual([threadId])
    await cancel(app, sandbox)
    await response.text()
  })
})
