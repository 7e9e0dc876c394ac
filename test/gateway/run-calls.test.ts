import { expect, test } from 'bun:test'
import { createMemory } from '../../src/async/shared-memory.ts'
import { createPrices } from '../../src/gateway/prices.ts'
import { createRunCalls } from '../../src/gateway/run-calls.ts'
import { cleanUpAfterEach, openTemporary } from '../runs/support.ts'

cleanUpAfterEach()

/** More than the steps between a budget that has room and the call that goes out. */
const MOMENTS = 12

for (let moment = 0; moment < MOMENTS; moment++) {
  test(`no call goes on upstream after its run has ended ${moment} steps after the budget had room`, async () => {
    let sent: AbortSignal | undefined
    const hang = ((_: string, { signal }: { signal: AbortSignal }) => {
      sent = signal
      if (signal.aborted) return Promise.reject(signal.reason)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }) as unknown as typeof fetch
    const calls = createRunCalls(
      {
        db: openTemporary(),
        memory: createMemory({ bytes: 1_000_000 }),
        prices: createPrices({}, () => {}),
        fetch: hang,
        log() {},
        observe() {},
        traceparentOf: () => undefined,
        budgets: {
          findReached: () => [],
          async reserve() {
            afterSteps(moment, () => calls.close())
            return { release() {} }
          },
        },
      },
      {
        ...{ teamId: 'team_1', agentSlug: 'coder', sandboxId: 'sbx_1', threadId: 'thr_1', runId: 'run_1' },
        ...{ model: 'anthropic/claude-sonnet-4-6', budgets: {}, inside: { environmentId: 'env_1', via: 'relay' } },
      },
      { name: 'anthropic', wire: 'anthropic', baseUrl: 'http://127.0.0.1/v1' },
      'claude-sonnet-4-6',
    )
    const body = JSON.stringify({ model: 'claude-sonnet-4-6', max_tokens: 1, messages: [] })
    const request = new Request('http://gateway/gateway/anthropic/v1/messages', { method: 'POST', body })
    const route = { wire: 'anthropic', method: 'POST', path: '/messages', metered: true } as const
    let status: number | undefined
    void calls.answer(request, route).then(answer => {
      status = answer.status
    })
    for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate)
    expect(sent?.aborted ?? true).toBe(true)
    expect(status).toBe(401)
  })
}

function afterSteps(steps: number, work: () => void): void {
  if (steps === 0) work()
  else queueMicrotask(() => afterSteps(steps - 1, work))
}
