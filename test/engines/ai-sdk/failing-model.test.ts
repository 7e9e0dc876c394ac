import { describe, expect, test } from 'bun:test'
import { allWires } from '../../support/model-server.ts'
import { codesOf, openStage } from './stage.ts'

const { model, play } = openStage()

describe('a failing model', () => {
  const wait = { 'retry-after-ms': '1' }
  test.each([...allWires])(
    'is asked again on %s after 429, 500 and a broken stream, and the wait is told',
    async wire => {
      model.play({ status: 429, headers: wait }, { status: 500, headers: wait }, { text: 'At last.' })
      const { end, text, events, chunks } = await play({ wire })
      expect([end.status, text, codesOf(events)]).toEqual(['completed', 'At last.', ['model_retry', 'model_retry']])
      expect(chunks.filter(({ type }) => type === 'data-notice')).toHaveLength(2)
    },
  )

  test.each([...allWires])('is asked again on %s when its stream breaks before a word', async wire => {
    model.play({ brokenStream: true }, { text: 'At last.' })
    const { end, text, events } = await play({ wire })
    expect([end.status, text, codesOf(events)]).toEqual(['completed', 'At last.', ['model_retry']])
  })

  test('is waited for as long as it asks, in seconds too', async () => {
    model.play({ status: 429, headers: { 'retry-after': '1' } }, { text: 'At last.' })
    const startMs = performance.now()
    expect((await play()).text).toBe('At last.')
    expect(performance.now() - startMs).toBeGreaterThan(990)
  })

  test('is not asked again when it said something', async () => {
    model.play({ text: 'So far ', ending: 'error' })
    const { end, text } = await play()
    expect([end.status, text, model.requests.length]).toEqual(['failed', 'So far ', 1])
  })

  test('is not asked again when its connection breaks after a word', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    model.play({ text: 'So far ', cutAfter: promise })
    const { end, text } = await play({ onEvent: ({ type }) => type === 'text' && resolve() })
    expect([end.status, text, model.requests.length]).toEqual(['failed', 'So far ', 1])
  })

  const final: [string, number, Record<string, string>][] = [
    ['a wrong key', 401, {}],
    ['a spent budget', 402, {}],
    ['a request it does not take', 400, {}],
    ['what it says is no use to try again', 500, { 'x-should-retry': 'false' }],
  ]
  test.each(final)('is asked once for %s', async (_, status, headers) => {
    model.play({ status, headers, message: 'the reason' })
    const { end } = await play()
    expect(end).toEqual({
      status: 'failed',
      error: { code: 'model_refused', message: `The model answered ${status}: the reason` },
    })
    expect(model.requests.length).toBe(1)
  })

  test('is given up after four retries', async () => {
    model.play(...Array.from({ length: 9 }, () => ({ status: 503, headers: wait })))
    expect((await play()).end.status).toBe('failed')
    expect(model.requests.length).toBe(5)
  })

  test('that nobody reaches is told of after retries, and a cancel ends the wait', async () => {
    const abort = new AbortController()
    const { end } = await play({
      context: {
        signal: abort.signal,
        openModel: () => model.access('openai-chat', { baseUrl: 'http://127.0.0.1:1/v1' }),
      },
      onEvent: ({ type }) => type === 'notice' && abort.abort(),
    })
    expect(end).toEqual({ status: 'cancelled' })
  })

  test('that is not configured ends the turn with the reason', async () => {
    const openModel = () => {
      throw new Error('no key for anthropic')
    }
    expect((await play({ context: { openModel } })).end).toMatchObject({
      error: { message: expect.stringContaining('no key') },
    })
  })

  test('that must not tell its reasoning is asked for the answer alone', async () => {
    const message = 'Your organization must be verified to generate reasoning summaries.'
    model.play({ status: 400, message }, { text: 'Fine.' })
    const { text } = await play({
      context: { openModel: () => model.access('openai-responses', { id: 'gpt-5' }) },
    })
    expect(text).toBe('Fine.')
    expect(model.requests.map(({ body }) => body.reasoning?.summary)).toEqual(['auto', undefined])
  })
})
