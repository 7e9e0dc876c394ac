import type { CallAnswer, Engine, EngineContext, EngineEvent, Plugin } from '../../src/plugin-api/index.ts'

/**
 * An engine without a model that asks. Each line of the prompt is a step: `ask COMMAND` wants to run it in the sandbox,
 * `pick X` calls the client's tool `pick`, `say X` speaks, `nap` takes
 * a while. It waits when it has asked something. When it goes on, it runs what
 * was approved, and says what became of each call; then it takes the steps after the line `then`, as often as there is one.
 */
export const asking: Engine = {
  name: 'asking',
  supports: ['approvals', 'clientTools'],
  async *run({ prompt, history, continues }, context) {
    const text = prompt.flatMap(({ parts }) => parts.map(part => String(part.text ?? ''))).join('\n')
    const rounds = text.split('\nthen\n')
    const before = continues && !continues.isLate ? continues.reply.parts : []
    for (const answer of continues?.answers ?? []) {
      yield* take(answer, continues?.isLate === true, context)
      if (context.signal.aborted) return { status: 'cancelled' }
    }
    const round = before.filter(({ type, text }) => type === 'text' && text === 'round\n').length
    yield { type: 'text', id: `round${round}`, delta: 'round\n' }
    yield { type: 'part-end', id: `round${round}` }
    let isWaiting = false
    for (const [index, line] of (rounds[round] ?? '').split('\n').entries()) {
      const [, word, rest = ''] = /^(ask|pick|say|nap)(?: (.*))?$/.exec(line) ?? []
      const callId = `call_${history.length}_${round}_${index}`
      if (word === 'say') yield { type: 'text', id: callId, delta: `${rest}\n` }
      if (word === 'nap') await Bun.sleep(Number(rest))
      if (word === 'ask') {
        yield { type: 'tool-call', callId, name: 'Run', input: { command: rest } }
        yield { type: 'approval-request', callId, reason: `It wants to run ${rest}.` }
        isWaiting = true
      }
      if (word === 'pick') {
        yield { type: 'tool-call', callId, name: 'pick', input: { of: rest } }
        isWaiting = true
      }
    }
    return { status: isWaiting ? 'waiting' : 'completed' }
  },
}

async function* take(answer: CallAnswer, isLate: boolean, context: EngineContext): AsyncGenerator<EngineEvent> {
  const { callId, name, input, type } = answer
  const shownId = isLate && type === 'approved' ? `${callId}-late` : callId
  if (type === 'approved') {
    if (isLate) yield { type: 'tool-call', callId: shownId, name, input }
    yield { type: 'tool-begin', callId }
    const { command = '' } = input as { command?: string }
    const { environment, cwd, env, signal } = context
    const child = await environment.spawn({ command: ['/bin/sh', '-c', command], cwd, env, signal })
    const [output] = await Promise.all([new Response(child.stdout).text(), child.stderr.pipeTo(new WritableStream())])
    await child.exited
    yield { type: 'tool-result', callId: shownId, output }
  }
  const said = type === 'denied' ? (answer.reason ?? '') : type === 'output' ? JSON.stringify(answer.output) : ''
  yield { type: 'text', id: `answer-${callId}`, delta: `${type} ${said}\n` }
}

export const askingPlugin: Plugin = { name: 'asking', engine: () => asking }

export default askingPlugin
