import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { cleanUpAfterEach } from '../runs/support.ts'
import { call, gatewayScene, REAL_KEY, wireCases } from './support.ts'

cleanUpAfterEach()

const [anthropic, chat] = wireCases as [(typeof wireCases)[0], (typeof wireCases)[0]]

for (const wire of wireCases) {
  test(`${wire.wire}: the provider sees its real key, and nothing of the caller's token`, async () => {
    const { open, upstream } = gatewayScene()
    const session = open({ model: wire.model })
    await (await call(session, wire, 'hi')).text()
    const sent = JSON.stringify([...upstream.seen[0]!.headers])
    expect(sent).toContain(REAL_KEY)
    expect(sent).not.toContain(session.access.token)
    expect(upstream.seen[0]!.headers.get('accept-encoding')).toBe('identity')
  })
}

test('the key is in no answer, no log line, no row and not in what an engine is given', async () => {
  const { db, open, log, upstream } = gatewayScene()
  const session = open()
  let said = JSON.stringify(session.access)
  for (const text of ['hi', 'LEAK', 'ERR401', 'MOVED', 'MIDERR']) {
    const answer = await call(session, anthropic, text)
    said += JSON.stringify([...answer.headers]) + (await answer.text())
  }
  await upstream.stop()
  said += await (await call(session, anthropic, 'hi')).text()
  said += log.join('\n')
  const directory = dirname(db.filename)
  for (const name of readdirSync(directory)) said += readFileSync(`${directory}/${name}`, 'latin1')
  expect(said).toContain('no such key: ***')
  expect(said).toContain('anthropic cannot be reached')
  expect(said).not.toContain(REAL_KEY)
  expect(log.join()).not.toContain(session.access.token)
  expect(said).not.toContain('org-secret')
  expect(said).not.toContain('set-cookie')
})

test('a provider that redirects does not get the key carried elsewhere', async () => {
  const { open } = gatewayScene()
  const answer = await call(open(), anthropic, 'MOVED')
  expect(answer.status).toBe(502)
})

test('the token is taken as x-api-key, Bearer and x-goog-api-key', async () => {
  const { open } = gatewayScene()
  const { access } = open()
  const ways = [
    { 'x-api-key': access.token },
    { authorization: `Bearer ${access.token}` },
    { 'x-goog-api-key': access.token },
  ]
  for (const headers of ways) {
    const answer = await access.fetch(`${access.baseUrl}/models`, { headers: headers as Record<string, string> })
    expect(answer.status).toBe(200)
    await answer.text()
  }
  for (const headers of [{}, { 'x-api-key': 'tbr_wrong' }, { 'x-api-key': REAL_KEY }]) {
    const answer = await access.fetch(`${access.baseUrl}/models`, { headers: headers as Record<string, string> })
    expect(answer.status).toBe(401)
  }
})

test('a closed session refuses its token, and says not to try again', async () => {
  const { open, upstream } = gatewayScene()
  const session = open()
  await session.close()
  const answer = await call(session, anthropic, 'hi')
  expect(answer.status).toBe(401)
  expect(answer.headers.get('x-should-retry')).toBe('false')
  expect(await answer.json()).toMatchObject({ type: 'error', error: { type: 'authentication_error' } })
  expect(upstream.seen).toEqual([])
})

test('closing ends streams on their way and stores them first', async () => {
  const { open, calls, upstream } = gatewayScene()
  const session = open()
  const reader = (await call(session, anthropic, 'STALL')).body!.getReader()
  await reader.read()
  await session.close()
  expect(calls()).toMatchObject([{ status: 'aborted' }])
  await upstream.seen[0]!.gone
  await expect(
    (async () => {
      while (!(await reader.read()).done);
    })(),
  ).rejects.toThrow()
})

const ownModel = { model: 'claude-sonnet-4-6' }
const refused: [string, string, object, number][] = [
  ['another model', '/anthropic/v1/messages', { model: 'claude-opus-4-7' }, 403],
  ['no model', '/anthropic/v1/messages', {}, 403],
  ['another provider', '/openai/v1/responses', { model: 'claude-sonnet-4-6' }, 403],
  ['a provider that is not here', '/none/v1/messages', { model: 'claude-sonnet-4-6' }, 403],
  ['a path that is not let through', '/anthropic/v1/files', { model: 'claude-sonnet-4-6' }, 403],
  ['a path that climbs', '/anthropic/v1/messages/../../admin', { model: 'claude-sonnet-4-6' }, 403],
  ['an encoded path', '/anthropic/v1/%6dessages', { model: 'claude-sonnet-4-6' }, 403],
  ['a call in the background', '/anthropic/v1/responses', { model: 'claude-sonnet-4-6', background: true }, 403],
  ['a list of other models: regression', '/anthropic/v1/chat/completions', { ...ownModel, models: ['x'] }, 403],
  [
    'other models to fall back to: regression',
    '/anthropic/v1/chat/completions',
    { ...ownModel, fallbacks: ['x'] },
    403,
  ],
  ['many answers of OpenAI: regression', '/anthropic/v1/chat/completions', { ...ownModel, n: 128 }, 403],
  ['many answers, as a text: regression', '/anthropic/v1/chat/completions', { ...ownModel, n: '128' }, 403],
  [
    'many answers of Gemini: regression',
    '/anthropic/v1/models/claude-sonnet-4-6:generateContent',
    { generation_config: { candidate_count: 8 } },
    403,
  ],
  ['a body that is no object', '/anthropic/v1/messages', [], 400],
]
for (const [what, path, body, status] of refused) {
  test(`refused with ${status}, and nothing goes out: ${what}`, async () => {
    const { open, upstream, calls } = gatewayScene()
    const { access } = open()
    const answer = await access.fetch(`http://gateway.invalid/gateway${path}`, {
      method: 'POST',
      headers: { 'x-api-key': access.token },
      body: JSON.stringify(body),
    })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('x-should-retry')).toBe('false')
    expect(upstream.seen).toEqual([])
    expect(calls()).toEqual([])
  })
}

test('the provider reads the model that was checked, whatever the body had twice', async () => {
  const { open, upstream } = gatewayScene()
  const { access } = open()
  const body = '{"model":"claude-opus-4-7","max_tokens":9,"messages":[],"model":"claude-sonnet-4-6"}'
  const headers = { 'x-api-key': access.token }
  await (await access.fetch(`${access.baseUrl}/messages`, { method: 'POST', headers, body })).text()
  expect(upstream.seen[0]!.body).toEqual({ model: 'claude-sonnet-4-6', max_tokens: 9, messages: [] })
})

test('a body of more than 32 MB is refused', async () => {
  const { open } = gatewayScene()
  const answer = await call(open(), anthropic, 'x'.repeat(33 * 1024 * 1024))
  expect(answer.status).toBe(413)
})

test("each provider's errors have its own shape", async () => {
  const { open } = gatewayScene()
  const shapes = ['{"type":"error","error":{', '{"error":{"message":', '{"error":{"message":', '{"error":{"code":401,']
  for (const [index, wire] of wireCases.entries()) {
    const session = open({ model: wire.model })
    await session.close()
    const text = await (await call(session, wire, 'hi')).text()
    expect(text).toStartWith(shapes[index]!)
  }
})

test('HEAD is answered to whoever asks', async () => {
  const { gateway } = gatewayScene()
  const answer = await gateway.handle(
    new Request('http://127.0.0.1:3128/gateway/anthropic/api/hello', { method: 'HEAD' }),
  )
  expect(answer.status).toBe(200)
})

test('a key that the caller has in the query goes no further', async () => {
  const { open, upstream } = gatewayScene()
  const session = open({ model: 'gemini/gemini-2.5-flash' })
  const gemini = { ...wireCases[3]!, streamPath: '/models/gemini-2.5-flash:streamGenerateContent?alt=sse&key=mine' }
  await (await call(session, gemini, 'hi')).text()
  expect(upstream.seen[0]!.path).toBe('/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse')
})

test('usage is asked for in a chat stream that forgot to', async () => {
  const { open, upstream } = gatewayScene()
  const answer = await call(open({ model: 'local/qwen3:8b' }), chat, 'hi')
  expect(upstream.seen[0]!.body.stream_options).toEqual({ include_usage: true })
  expect(await answer.text()).toContain('"prompt_tokens":150')
})

test('a run may have 32 streams at once', async () => {
  const { open } = gatewayScene()
  const session = open()
  for (let index = 0; index < 32; index++) expect((await call(session, anthropic, 'STALL')).status).toBe(200)
  expect((await call(session, anthropic, 'hi')).status).toBe(429)
  await session.close()
})

test('a run may wait for 32 answers at once', async () => {
  const { open, upstream } = gatewayScene()
  const session = open()
  const waiting = Array.from({ length: 32 }, () => call(session, anthropic, 'HANG'))
  while (upstream.seen.length < 32) await new Promise(setImmediate)
  expect((await call(session, anthropic, 'hi')).status).toBe(429)
  await session.close()
  await Promise.all(waiting)
})
