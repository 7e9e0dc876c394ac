import { expect, test } from 'bun:test'
import { createPrices } from '../../src/gateway/prices.ts'
import { readProviders } from '../../src/gateway/providers.ts'
import { parsePrices } from '../../src/gateway/settings.ts'

const providers = readProviders(
  { model: 'vllm/gpt-5', modelUrl: 'http://127.0.0.1:8000/v1', providers: {} },
  { ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' },
)
const [anthropic, openai, vllm] = ['anthropic', 'openai', 'vllm'].map(name => providers.get(name)!)
const million = { inputTokens: 1e6, outputTokens: 1e5, cacheReadTokens: 2e5, cacheWriteTokens: 0 }

test('listed models cost what the list says, the cache less', () => {
  const prices = createPrices({}, () => {})
  expect(prices.costUsd(anthropic!, 'claude-sonnet-4-6', million)).toBe(3.96)
  expect(prices.costUsd(openai!, 'gpt-5.2', million)).toBe(2.835)
  expect(prices.contextTokens(openai!, 'gpt-5.2')).toBe(400_000)
})

test("the operator's prices are stronger, by provider and model or by model", () => {
  const own = parsePrices(
    '{"anthropic/claude-sonnet-4-6":{"input":1,"output":10,"cacheRead":0.5},"m":{"input":2,"output":0}}',
  )
  const prices = createPrices(own, () => {})
  expect(prices.costUsd(anthropic!, 'claude-sonnet-4-6', million)).toBe(0.8 + 0.1 + 1)
  expect(prices.costUsd(vllm!, 'm', million)).toBe(2)
})

test('an unknown model costs nothing and is logged once', () => {
  const log: string[] = []
  const prices = createPrices({}, line => log.push(line))
  for (let turn = 0; turn < 3; turn++) expect(prices.costUsd(vllm!, 'gpt-5', million)).toBe(0)
  expect(log.length).toBe(1)
  expect(prices.costUsd(vllm!, 'constructor', million)).toBe(0)
  expect(log[0]).toContain('vllm/gpt-5')
})

test('prices that are none are refused', () => {
  for (const text of ['[]', '{"m":{"input":1}}', '{"m":{"input":-1,"output":1}}', '{"m":{"input":1,"output":"2"}}']) {
    expect(() => parsePrices(text)).toThrow()
  }
})
