import { expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, type LanguageModel, streamText } from 'ai'
import type { ModelAccess } from '../../src/plugin-api/index.ts'
import { cleanUpAfterEach } from '../runs/support.ts'
import { DOLLAR_A_TOKEN, gatewayScene, REAL_KEY } from './support.ts'
import { told, WORDS } from './upstream.ts'

cleanUpAfterEach()

const settings = ({ baseUrl, token, fetch }: ModelAccess) => ({ baseURL: baseUrl, apiKey: token, fetch })

const models: [string, (access: ModelAccess) => LanguageModel][] = [
  ['anthropic/claude-sonnet-4-6', access => createAnthropic(settings(access))(access.id)],
  ['openai/gpt-5.2', access => createOpenAI(settings(access)).responses(access.id)],
  [
    'local/qwen3:8b',
    access =>
      createOpenAICompatible({ name: access.provider, ...settings(access), includeUsage: true }).chatModel(access.id),
  ],
  ['openai/gpt-5-mini', access => createOpenAI(settings(access)).chat(access.id)],
  [
    'gemini/gemini-2.5-flash',
    access => createOpenAICompatible({ name: 'gemini', ...settings(access) }).chatModel(access.id),
  ],
]

for (const [name, modelOf] of models) {
  test(`${name}: the AI SDK streams through, and counts what the gateway counts`, async () => {
    const { open, calls, upstream } = gatewayScene()
    const session = open({ model: name })
    const result = streamText({ model: modelOf(session.access), prompt: 'hi', maxRetries: 0 })
    expect(await result.text).toBe(WORDS.join(''))
    if (!name.startsWith('gemini')) {
      expect(await result.totalUsage).toMatchObject({ inputTokens: told.inputTokens, outputTokens: told.outputTokens })
    }
    expect(calls()).toMatchObject([{ status: 'completed', ...told }])
    expect(JSON.stringify([...upstream.seen[0]!.headers])).toContain(REAL_KEY)
  })

  test(`${name}: the AI SDK generates through`, async () => {
    const { open, calls } = gatewayScene()
    const { access } = open({ model: name })
    expect((await generateText({ model: modelOf(access), prompt: 'hi', maxRetries: 0 })).text).toBe(WORDS.join(''))
    expect(calls()).toMatchObject([{ status: 'completed', ...told }])
  })

  test(`${name}: an abort in the AI SDK ends the call upstream and is paid for`, async () => {
    const { open, calls, upstream } = gatewayScene()
    const { access } = open({ model: name })
    const stop = new AbortController()
    const prompt = { model: modelOf(access), prompt: 'STALL', maxRetries: 0, abortSignal: stop.signal }
    let said = ''
    for await (const part of streamText(prompt).fullStream) {
      if (part.type === 'text-delta') said += part.text
      if (said === 'Hello from the ') stop.abort()
    }
    await upstream.seen[0]!.gone
    expect(calls()).toMatchObject([{ status: 'aborted', outputTokens: 4 }])
  })
}

test('the AI SDK tells the reason of a budget, and does not try again', async () => {
  const { open, upstream } = gatewayScene({ prices: DOLLAR_A_TOKEN })
  const { access } = open({ budgets: { maxBudgetUsd: 0 } })
  const call = generateText({ model: createAnthropic(settings(access))(access.id), prompt: 'hi' })
  await expect(call).rejects.toThrow('budget_exceeded: The run has spent $0.00 of its $0.00.')
  expect(upstream.seen).toEqual([])
})
