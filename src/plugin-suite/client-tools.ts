import type { EngineContext } from '../plugin-api/index.ts'
import { goOn, listWaiting, type Waited } from './goes-on.ts'
import { expectGrammar } from './grammar.ts'
import type { SceneCall } from './scene.ts'
import type { Stage } from './stage.ts'

const pick: SceneCall = { name: 'pickColor', input: { hue: 'warm' } }
const clientTools: EngineContext['clientTools'] = {
  pickColor: {
    description: 'Lets the user pick a color.',
    inputSchema: { type: 'object', properties: { hue: { type: 'string' } }, required: ['hue'] },
  },
  locate: { description: 'Tells where the user is.', inputSchema: { type: 'object', properties: {} } },
}

/** Tests what an engine promises that supports tools of the client. */
export function describeClientTools(stage: Stage): void {
  const { kit, subject, scene, play } = stage
  const { describe, expect } = kit

  const call = async (prompt: string): Promise<Waited> => {
    const context = { threadId: crypto.randomUUID(), clientTools }
    const result = await play(prompt, { context })
    return { result, prompt, context }
  }

  describe("that supports the client's tools", () => {
    const one = { does: 'call' as const, calls: [pick] }
    const isWaiting = ({ result }: Waited) => {
      expect(result.end).toEqual({ status: 'waiting' })
      const [part] = listWaiting(result)
      expect(part).toMatchObject({ type: 'tool-pickColor', state: 'input-available', input: pick.input })
      expect(part?.providerExecuted).toBeUndefined()
      expectGrammar(expect, result)
      return String(part?.toolCallId)
    }

    scene("leaves a call of the client's tool to the client, and takes its output", one, async prompt => {
      const waited = await call(prompt)
      const callId = isWaiting(waited)
      const result = await goOn(stage, waited, () => ({ type: 'output', output: { color: 'crimson' } }))
      expect(result.end).toEqual({ status: 'completed' })
      expect(result.text).toContain('crimson')
      expect(result.parts[0]?.type === 'text' ? result.parts[1] : result.parts[0]).toMatchObject({
        toolCallId: callId,
        state: 'output-available',
      })
      expectGrammar(expect, result, [callId])
    })

    scene("tells its model of a failure of the client's tool", one, async prompt => {
      const waited = await call(prompt)
      isWaiting(waited)
      const result = await goOn(stage, waited, () => ({ type: 'error', error: 'the window is closed' }))
      expect(result.end).toEqual({ status: 'completed' })
      expect(result.text).toContain('the window is closed')
    })

    const both = { does: 'call' as const, calls: [pick, { name: 'locate', input: {} }] }
    scene('leaves several calls of one answer to the client', both, async prompt => {
      let waited = await call(prompt)
      for (let rounds = 0; waited.result.end.status === 'waiting' && rounds < 2; rounds++) {
        const result = await goOn(stage, waited, input =>
          JSON.stringify(input) === '{}'
            ? { type: 'output', output: 'at sea' }
            : { type: 'output', output: { color: 'crimson' } },
        )
        waited = { ...waited, result }
      }
      const { end, text } = waited.result
      expect([end, text.includes('at sea'), text.includes('crimson')]).toEqual([{ status: 'completed' }, true, true])
    })

    scene('takes an output when all that was in memory is lost', one, async prompt => {
      const waited = await call(prompt)
      isWaiting(waited)
      await subject.engine.close?.()
      const engine = subject.reopen?.() ?? subject.engine
      const result = await goOn(stage, waited, () => ({ type: 'output', output: { color: 'crimson' } }), { engine })
      expect([result.end, result.text.includes('crimson')]).toEqual([{ status: 'completed' }, true])
      await engine.close?.()
    })
  })
}
