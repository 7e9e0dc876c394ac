import { describe, expect, test } from 'bun:test'
import { parseChunk } from '../../src/stream/chunk.ts'
import { bash, modelSetups, type Place, useAgentServer } from '../support/agent-server.ts'
import { processesNamed } from '../support/leftovers.ts'
import { eventsOf, textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'
import { file_path, finalProgram, finalText, playProgram } from './program.ts'

const keyHeader = { anthropic: 'x-api-key', 'openai-responses': 'authorization', 'openai-chat': 'authorization' }
const stopped = 'The server stopped during this reply.'

describe.each([...modelSetups])('coder on $wire', setup => {
  const { server, model, modelKey, chat, said, threadOf } = useAgentServer([setup])
  let place: Place

  test('writes a program, runs it, reads it, edits it and runs it again', async () => {
    playProgram(model)
    const { chunks, ...ids } = await said('Sum the primes below 100.')
    place = { sandboxId: ids.sandboxId, threadId: ids.threadId }
    for (const chunk of chunks) expect(parseChunk(JSON.stringify(chunk))).toEqual(chunk)
    const outputs = chunks.filter(({ type }) => type === 'tool-output-available')
    const inputs = chunks.filter(({ type }) => type === 'tool-input-available')
    expect(inputs.map(({ toolName }) => toolName)).toEqual(['Write', 'Bash', 'Read', 'Edit', 'Bash'])
    expect(outputs.map(({ toolCallId }) => toolCallId)).toEqual(inputs.map(({ toolCallId }) => toolCallId))
    expect([outputs[1].output, outputs[4].output]).toEqual(['77\n', '1060\n'])
    expect(textIn(chunks)).toBe(finalText)
    expect(chunks.slice(-2).map(({ type }) => type)).toEqual(['message-metadata', 'finish'])

    const { body: file } = await server.ask('GET', `/v1/sandboxes/${ids.sandboxId}/files?path=${file_path}`)
    expect(file.content).toBe(finalProgram)
  })

  test('reaches the model with the real key, on its own wire', () => {
    expect(model.requests.map(({ wire }) => wire)).toEqual(Array(6).fill(setup.wire))
    expect(model.requests.filter(({ headers }) => !headers.get(keyHeader[setup.wire])?.endsWith(modelKey))).toEqual([])
  })

  test('tells what it used as the usage does', async () => {
    const { messages, usage } = await threadOf(place)
    const { metadata } = messages.at(-1)
    for (const groupBy of ['thread', 'agent', 'model']) {
      const { body } = await server.ask('GET', `/v1/usage?groupBy=${groupBy}`)
      const { inputTokens, outputTokens, totalCostUsd } = metadata
      expect(body.total).toMatchObject({ calls: 6, inputTokens, outputTokens, costUsd: totalCostUsd })
      expect(body.groups).toHaveLength(1)
    }
    expect(metadata).toMatchObject({ ...place, inputTokens: 900, outputTokens: 150, model: setup.model })
    expect(metadata.totalCostUsd).toBeGreaterThan(0)
    expect(usage).toMatchObject({ inputTokens: 900, outputTokens: 150, totalCostUsd: metadata.totalCostUsd })
  })

  test('has all of it after a restart, and goes on with it', async () => {
    const before = await threadOf(place)
    expect(await server.stop()).toBe(0)
    await server.start()
    expect(await threadOf(place)).toEqual(before)
    model.play(({ body }) => ({ text: `I recall: ${JSON.stringify(body).includes('It prints 77')}.` }))
    const { chunks } = await said('Which one was it?', place)
    expect(textIn(chunks)).toBe('I recall: true.')
    expect((await threadOf(place)).messages.map(({ content }: any) => content)).toEqual([
      ...['Sum the primes below 100.', finalText],
      ...['Which one was it?', 'I recall: true.'],
    ])
  })

  test('killed in its second command, keeps what was shown, leaves no process and goes on', async () => {
    const nap = `4711.${server.pid}`
    model.play(
      { text: 'First this. ', calls: [bash('echo one > /home/user/one; cat /home/user/one')] },
      { text: 'Then that. ', calls: [bash(`echo begun; setsid sleep ${nap} & nohup sleep ${nap} & sleep ${nap}`)] },
    )
    const { response, ...ids } = await chat('Do both.')
    const seen: any[] = []
    const reading = (async () => {
      for await (const { data } of eventsOf(response)) seen.push(data)
    })().catch(() => {})
    await until(() => processesNamed(nap).length === 3 && textIn(seen) === 'First this. Then that. ')
    await server.kill()
    await reading
    await server.start()

    await until(() => processesNamed(nap).length === 0, `no sleep ${nap} lives`)
    const thread = await threadOf(ids)
    expect([thread.status, thread.error]).toEqual(['error', stopped])
    expect(thread.messages.at(-1).parts).toMatchObject([
      { type: 'text', text: 'First this. ' },
      { type: 'tool-Bash', state: 'output-available', output: 'one\n' },
      { type: 'step-start' },
      { type: 'text', text: 'Then that. ' },
      { type: 'tool-Bash', state: 'output-error', errorText: stopped },
    ])
    expect(thread.messages.at(-1).metadata).toMatchObject({
      status: 'interrupted',
      messageId: thread.messages.at(-1).id,
    })
    expect(textIn(seen)).toBe('First this. Then that. ')

    model.play({ calls: [bash('cat one')] }, ({ results, body }) => ({
      text: `${results[0]?.trim()}, ${['Do both.', 'First this.', 'Then that.', stopped].every(words => JSON.stringify(body).includes(words))}`,
    }))
    expect(textIn((await said('And now?', ids)).chunks)).toBe('one, true')
  })
})
