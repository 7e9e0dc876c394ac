import { expect, test } from 'bun:test'
import type { Engine } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { approve, waitingThread } from '../support/waiting.ts'

let runCount = 0

/** Asks, and then never begins what was approved. */
const stuck: Engine = {
  name: 'asking',
  supports: ['approvals', 'clientTools'],
  async *run({ continues }) {
    runCount += 1
    if (continues) return { status: 'waiting' }
    yield { type: 'tool-call', callId: 'c', name: 'Run', input: { command: 'true' } }
    yield { type: 'approval-request', callId: 'c' }
    return { status: 'waiting' }
  },
}

const app = useApp([], {}, () => [{ name: 'asking', engine: () => stuck }])

test('an engine that never begins what was approved is not asked for ever', async () => {
  const { post, settled, reply, thread } = await waitingThread(app, 'anything')
  await post(approve())
  await settled('error')
  expect(runCount).toBe(6)
  expect((await thread()).error).toBe('The agent could not go on: 5 runs ended before they began what was approved.')
  expect((await reply()).parts).toMatchObject([{ state: 'output-error', approval: { approved: true } }])
})
