import { afterAll, expect, test } from 'bun:test'
import { createCallIds } from '../../../plugins/ai-sdk/model/call-ids.ts'
import { openModel, systemMessage } from '../../../plugins/ai-sdk/model/model.ts'
import { callModel } from '../../../plugins/ai-sdk/model/model-call.ts'
import { allWires, type ModelTurn, startModelServer } from '../../support/model-server.ts'
import { until } from '../../support/until.ts'

const server = startModelServer()
afterAll(() => server.stop())

const stalls: [string, ModelTurn, string][] = [
  ['before a word, is asked again', { silent: true }, 'answered'],
  ['after a word, has failed', { text: 'So ', ending: 'hang' }, 'ended'],
]
for (const wire of allWires) {
  test.each(stalls)(`a model on ${wire} that stalls %s`, async (_, turn, status) => {
    server.play(turn, { text: 'At last.' })
    const model = openModel(server.access(wire))
    const answering = callModel({
      model,
      system: systemMessage(model, 'Help.'),
      messages: [{ role: 'user', content: 'Hi.' }],
      tools: {},
      signal: new AbortController().signal,
      // A busy machine may take this long for the first word.
      stallMs: 1000,
      callIds: createCallIds([]),
    })
    let step = await answering.next()
    while (!step.done) step = await answering.next()
    expect(step.value.status).toBe(status as never)
    if (step.value.status === 'ended') expect(step.value.end.error?.message).toContain('Nothing came for')
    await until(() => server.openCalls === 0)
  })
}
