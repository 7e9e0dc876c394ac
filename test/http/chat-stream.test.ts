import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { cancel, chat, say, startChat, threadOf } from '../support/chat.ts'
import { eventsOf, readChunks, textIn, typesIn } from '../support/sse.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})

describe('the stream', () => {
  test('has its headers', async () => {
    const { response, ...ids } = await startChat(app, 'hi', { sandboxId: id })
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-vercel-ai-ui-message-stream': 'v1',
      'x-accel-buffering': 'no',
      'x-sandbox-id': id,
      'x-thread-id': expect.stringMatching(/^thr_/),
      'x-run-id': expect.stringMatching(/^run_/),
      'access-control-expose-headers': 'x-sandbox-id, x-thread-id, x-run-id',
    })
    expect(ids.sandboxId).toBe(id)
    await response.text()
  })

  test('has the contract’s order and fields for plain text, to the byte', async () => {
    const { response, threadId, runId } = await startChat(app, 'Hello big world', { sandboxId: id })
    const frames = (await response.text()).split('\n\n')
    expect(frames.shift()).toBe(': open')
    expect(frames.splice(-2)).toEqual(['data: [DONE]', ''])
    const metadata = JSON.parse(frames.at(-2)!.split('data: ')[1]!).messageMetadata
    expect(Object.keys(metadata)).toEqual([
      'sessionId',
      'totalCostUsd',
      'inputTokens',
      'outputTokens',
      'durationMs',
      'sandboxId',
      'threadId',
      'runId',
      'messageId',
      'totalTokens',
      'model',
    ])
    expect(metadata).toEqual({
      sessionId: threadId,
      totalCostUsd: 0,
      inputTokens: 3,
      outputTokens: 3,
      durationMs: expect.any(Number),
      sandboxId: id,
      threadId,
      runId,
      messageId: expect.stringMatching(/^msg_/),
      totalTokens: 6,
      model: 'echo',
    })
    const [text] = frames[1]!.match(/text-\d+/)!
    const chunks = [
      { type: 'start' },
      { type: 'text-start', id: text },
      { type: 'text-delta', id: text, delta: 'Hello' },
      { type: 'text-delta', id: text, delta: ' big' },
      { type: 'text-delta', id: text, delta: ' world' },
      { type: 'text-end', id: text },
      { type: 'message-metadata', messageMetadata: metadata },
      { type: 'finish' },
    ]
    expect(frames).toEqual(chunks.map((chunk, n) => `id: ${runId}/${n + 1}\ndata: ${JSON.stringify(chunk)}`))
  })

  test('shows a command that ran in the sandbox as a Bash tool call between texts', async () => {
    const { chunks, ...ids } = await chat(app, 'before\n$ echo out; echo err >&2; exit 3\nafter', { sandboxId: id })
    expect(typesIn(chunks)).toEqual([
      'start',
      'text-start',
      'text-delta',
      'text-end',
      'tool-input-start',
      'tool-input-available',
      'tool-output-available',
      'start-step',
      'text-start',
      'text-delta',
      'text-end',
      'message-metadata',
      'finish',
    ])
    const { toolCallId } = chunks[4]
    const providerExecuted = true
    const input = { command: 'echo out; echo err >&2; exit 3' }
    expect(chunks.slice(4, 7)).toEqual([
      { type: 'tool-input-start', toolCallId, toolName: 'Bash', providerExecuted },
      { type: 'tool-input-available', toolCallId, toolName: 'Bash', input, providerExecuted },
      { type: 'tool-output-available', toolCallId, output: 'out\nerr\nexit code 3', providerExecuted },
    ])
    const [, reply] = (await threadOf(app, ids)).messages
    expect(reply.parts).toEqual([
      { type: 'text', text: 'before\n', state: 'done' },
      {
        type: 'tool-Bash',
        toolCallId,
        state: 'output-available',
        input,
        output: 'out\nerr\nexit code 3',
        providerExecuted,
      },
      { type: 'step-start' },
      { type: 'text', text: 'after', state: 'done' },
    ])
  })

  test('a command has the sandbox’s files, variables and directory', async () => {
    app.agent('placed', { envs: { A: 'a' }, cwd: '/srv/here', files: { '/srv/here/f': 'f' } })
    const response = await app.request('POST', '/v1/chat/placed', {
      body: { messages: [say('$ pwd; cat f; echo $A')] },
    })
    const output = (await readChunks(response)).find(({ type }) => type === 'tool-output-available').output
    expect(output).toBe('/srv/here\nfa\n')
  })

  test('of a failure closes what is open, then metadata, error, finish', async () => {
    const { chunks } = await chat(app, 'some text\n/fail\nnever', { sandboxId: id })
    expect(typesIn(chunks).slice(-4)).toEqual(['text-end', 'message-metadata', 'error', 'finish'])
    expect(chunks.at(-2)).toEqual({ type: 'error', errorText: 'The echo engine fails because it was asked to.' })
  })

  test('comes as it is made', async () => {
    const { response } = await startChat(app, '/slow 1000', { sandboxId: id })
    for await (const { data } of eventsOf(response)) if (data.delta === '1 ') break
    expect((await cancel(app, id)).body.status).toBe('cancelled')
  })

  for (const [name, text] of [
    ['line breaks', 'a\nb\r\nc\n'],
    ['what looks like frames', 'data: [DONE]\nid: x\n: y'],
    ['every script', '漢字 🎉 \u2028 \u0000 \ud83d '],
    ['a long text', 'word '.repeat(20_000)],
    ['space around it', '  padded  '],
  ] as const) {
    test(`keeps ${name}`, async () => {
      const { chunks, ...ids } = await chat(app, text, { sandboxId: id })
      expect(textIn(chunks)).toBe(text)
      expect((await threadOf(app, ids)).messages[1].content).toBe(text)
    })
  }
})
