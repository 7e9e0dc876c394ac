import type { EngineContext, Permission } from '../plugin-api/index.ts'
import { goOn, listOpen, listWaiting, partOf, sessionOf, type Waited } from './goes-on.ts'
import { expectGrammar } from './grammar.ts'
import type { SceneCall } from './scene.ts'
import { countSleepers } from './sleepers.ts'
import type { Stage } from './stage.ts'
import { until } from './until.ts'

const bash = (command: string): SceneCall => ({ name: 'Bash', input: { command } })
/** Shows how many times it ran. */
const counting = (file: string) => `echo ran >> /tmp/${file}; cat /tmp/${file}`

/** Rules by which every command asks, but those that say otherwise. */
const decide = (_: string, input: unknown): Permission => {
  const command = String((input as { command?: unknown } | null)?.command ?? '')
  if (command.includes('refused')) return { decision: 'deny', reason: 'never on a Friday' }
  return command.includes('/tmp/') ? { decision: 'ask', reason: 'It changes something.' } : { decision: 'allow' }
}

/** Tests what an engine promises that supports approvals. Over 100 lines: one scene after the other. */
export function describeApprovals(stage: Stage): void {
  const { kit, subject, scene, play, shell } = stage
  const { describe, expect } = kit

  /** Plays calls in a thread of their own, under the rules. */
  const ask = async (prompt: string, more: Partial<EngineContext> = {}): Promise<Waited> => {
    const context = { threadId: crypto.randomUUID(), permissions: { decide }, ...more }
    const result = await play(prompt, { context })
    return { result, prompt, context }
  }
  /** After this, nothing that was in memory is left. */
  const lose = async () => {
    await subject.engine.close?.()
    return subject.reopen?.() ?? subject.engine
  }

  describe('that supports approvals', () => {
    const one = { does: 'call' as const, calls: [bash(counting('one'))] }
    const isWaiting = (waited: Waited) => {
      expect(waited.result.end).toEqual({ status: 'waiting' })
      expectGrammar(expect, waited.result)
      const [part] = listWaiting(waited.result)
      expect(part).toMatchObject({
        type: 'tool-Bash',
        state: 'approval-requested',
        ...(one.calls[0] && { input: one.calls[0].input }),
      })
      return String(part?.toolCallId)
    }

    scene('asks before a call, and makes it once when that is approved', one, async prompt => {
      const waited = await ask(prompt)
      const callId = isWaiting(waited)
      expect(waited.result.events).toContainEqual({ type: 'approval-request', callId, reason: 'It changes something.' })
      expect(await shell('ls /tmp/one 2>/dev/null')).toBe('')
      const shown: string[] = []
      const onEvent = async ({ type }: { type: string }) => {
        if (type === 'tool-begin') shown.push(await shell('ls /tmp/one 2>/dev/null'))
      }
      const result = await goOn(stage, waited, () => ({ type: 'approved' }), { onEvent })
      expect([result.end, shown]).toEqual([{ status: 'completed' }, ['']])
      expect(result.events).toContainEqual({ type: 'tool-begin', callId })
      expect(result.parts.filter(({ type }) => type === 'tool-Bash')).toHaveLength(1)
      expect(partOf(result, counting('one'))).toMatchObject({ toolCallId: callId, state: 'output-available' })
      expect(String(partOf(result, counting('one'))?.output).trimEnd()).toBe('ran')
      expect(result.text).toContain('ran')
      expectGrammar(expect, result, [callId])
    })

    scene('does not make a call that is denied, and tells its model why', one, async prompt => {
      const waited = await ask(prompt)
      const callId = isWaiting(waited)
      const result = await goOn(stage, waited, () => ({ type: 'denied', reason: 'not on a Sunday' }))
      expect(result.end).toEqual({ status: 'completed' })
      expect(partOf(result, counting('one'))).toMatchObject({ toolCallId: callId, state: 'output-denied' })
      expect(result.events.filter(({ type }) => type === 'tool-begin' || type === 'tool-result')).toEqual([])
      expect(result.text).toContain('not on a Sunday')
      expect(await shell('ls /tmp/one 2>/dev/null')).toBe('')
      expectGrammar(expect, result, [callId])
    })

    const ruled = { does: 'call' as const, calls: [bash('echo free'), bash('echo refused')] }
    scene('asks nobody about calls that the rules allow or deny', ruled, async prompt => {
      const { result } = await ask(prompt)
      expect(result.end).toEqual({ status: 'completed' })
      expect(partOf(result, 'echo free')).toMatchObject({ state: 'output-available' })
      expect(partOf(result, 'echo refused')).toMatchObject({ state: 'output-error' })
      expect(result.text).toContain('never on a Friday')
      expectGrammar(expect, result)
    })

    const commands = [counting('a'), 'echo free', counting('b'), counting('c')]
    const many = { does: 'call' as const, calls: commands.map(bash) }
    scene('asks for each call of an answer, at once or one after the other', many, async prompt => {
      let waited = await ask(prompt)
      let rounds = 0
      for (; waited.result.end.status === 'waiting' && rounds < commands.length; rounds++) {
        const open = listOpen(waited.result)
        const result = await goOn(stage, waited, input =>
          JSON.stringify(input).includes('/tmp/b') ? { type: 'denied', reason: 'not b' } : { type: 'approved' },
        )
        expectGrammar(expect, result, open)
        waited = { ...waited, result }
      }
      const { result } = waited
      expect([result.end, rounds > 0]).toEqual([{ status: 'completed' }, true])
      const states = commands.map(command => partOf(result, command)?.state)
      expect(states).toEqual(['output-available', 'output-available', 'output-denied', 'output-available'])
      expect(await shell('cd /tmp; cat a c; ls b 2>/dev/null')).toBe('ran\nran\n')
      expect(result.text).toContain('not b')
    })

    scene('makes an approved call once when all that was in memory is lost', one, async prompt => {
      const waited = await ask(prompt)
      const callId = isWaiting(waited)
      const engine = await lose()
      const result = await goOn(stage, waited, () => ({ type: 'approved' }), { again: one.calls, engine })
      expect(result.end).toEqual({ status: 'completed' })
      expect(result.parts.filter(({ type }) => type === 'tool-Bash')).toHaveLength(1)
      expect(partOf(result, counting('one'))).toMatchObject({ toolCallId: callId, state: 'output-available' })
      expect(result.events).toContainEqual({ type: 'tool-begin', callId })
      expect(await shell('cat /tmp/one')).toBe('ran\n')
      expectGrammar(expect, result, [callId])
      await engine.close?.()
    })

    scene('tells its model why a call was denied when all that was in memory is lost', one, async prompt => {
      const waited = await ask(prompt)
      const callId = isWaiting(waited)
      const engine = await lose()
      const result = await goOn(stage, waited, () => ({ type: 'denied', reason: 'not on a Sunday' }), { engine })
      expect([result.end, result.text.includes('not on a Sunday')]).toEqual([{ status: 'completed' }, true])
      expect(partOf(result, counting('one'))).toMatchObject({ toolCallId: callId, state: 'output-denied' })
      expect(await shell('ls /tmp/one 2>/dev/null')).toBe('')
      await engine.close?.()
    })

    const background = '(setsid sleep 7401 > /dev/null 2>&1 &); echo up > /tmp/up; sleep 7401'
    const lasting = { does: 'call' as const, calls: [bash(background)] }
    scene('leaves nothing alive of a call that it makes again and that is cancelled', lasting, async prompt => {
      const waited = await ask(prompt)
      expect(waited.result.end).toEqual({ status: 'waiting' })
      const engine = await lose()
      const abort = new AbortController()
      void until(async () => (await shell('cat /tmp/up 2>/dev/null')) === 'up\n').finally(() => abort.abort())
      const context = { ...waited.context, signal: abort.signal }
      const approve = () => ({ type: 'approved' as const })
      const result = await goOn(stage, { ...waited, context }, approve, { again: lasting.calls, engine })
      expect([result.end, await countSleepers(stage.inside(), '7401')]).toEqual([{ status: 'cancelled' }, 0])
      await engine.close?.()
    })

    scene(
      'answers another message while a call waits, and makes the call when it is approved late',
      one,
      async prompt => {
        const waited = await ask(prompt)
        isWaiting(waited)
        const { context, result: first } = waited
        const said = subject.stage({ does: 'say', text: 'Of course.' }) ?? ''
        const second = await play(said, { context, history: first.thread, turn: sessionOf(first) })
        expect([second.end, second.text]).toEqual([{ status: 'completed' }, 'Of course.'])
        expect(await shell('ls /tmp/one 2>/dev/null')).toBe('')
        subject.stage({ does: 'go on', calls: one.calls })
        const [call] = listWaiting(first)
        const answer = { callId: String(call?.toolCallId), name: 'Bash', input: call?.input, type: 'approved' as const }
        const reply = first.thread.at(-1)
        if (!reply) throw new Error('the turn has no reply')
        const late = await play('', {
          ...{ context, history: second.thread },
          turn: { ...sessionOf(second), continues: { reply, answers: [answer], isLate: true } },
        })
        expect(late.end).toEqual({ status: 'completed' })
        expect(late.events).toContainEqual({ type: 'tool-begin', callId: answer.callId })
        expect(late.parts.filter(({ type }) => type === 'tool-Bash')).toMatchObject([{ state: 'output-available' }])
        expect(late.parts.find(({ type }) => type === 'tool-Bash')?.toolCallId === answer.callId).toBe(false)
        expect(await shell('cat /tmp/one')).toBe('ran\n')
        expectGrammar(expect, late)
      },
    )

    scene('does nothing more when a turn that goes on is cancelled at once', one, async prompt => {
      const waited = await ask(prompt)
      isWaiting(waited)
      const context = { ...waited.context, signal: AbortSignal.abort() }
      const result = await goOn(stage, { ...waited, context }, () => ({ type: 'approved' }))
      expect(result.end).toEqual({ status: 'cancelled' })
      const again = await play(subject.stage({ does: 'say', text: 'Still here.' }) ?? '', {
        ...{ context: waited.context, history: result.thread, turn: sessionOf(waited.result) },
      })
      expect([again.end, again.text]).toEqual([{ status: 'completed' }, 'Still here.'])
      expect(await shell('ls /tmp/one 2>/dev/null')).toBe('')
    })
  })
}
