import { runCommand } from '../environment/run-command.ts'
import type { EngineEvent, EngineFeature, Environment } from '../plugin-api/index.ts'
import { describeApprovals } from './approvals.ts'
import { describeClientTools } from './client-tools.ts'
import { expectGrammar } from './grammar.ts'
import type { Kit } from './kit.ts'
import type { EngineUnderTest, Scene } from './scene.ts'
import { countSleepers } from './sleepers.ts'
import type { Stage } from './stage.ts'
import { describeSteering } from './steering.ts'
import { permissions, playTurn, type TurnInit } from './turn.ts'
import { until } from './until.ts'

export type { EngineUnderTest } from './scene.ts'

/** The environment in which the engine under test works. */
export interface SandboxForEngine {
  environment: Environment
  close(): Promise<void>
}

/** How long after an abort the engine may need to end with all its processes. A run's grace time is longer. */
const GRACE_MS = 4000

/** The events of engines that claim a feature. */
const needs: Readonly<Partial<Record<EngineEvent['type'], EngineFeature>>> = {
  'approval-request': 'approvals',
  'tool-begin': 'approvals',
  steered: 'steering',
}

/** Tests what every engine promises. The same tests run on each engine. */
export function describeEngine(
  kit: Kit,
  name: string,
  open: () => EngineUnderTest,
  openSandbox: () => Promise<SandboxForEngine>,
): void {
  const { describe, test, expect, beforeAll, afterAll } = kit
  describe(`engine ${name}`, () => {
    const subject = open()
    const openCalls = () => subject.openCalls?.() ?? 0
    let sandbox: SandboxForEngine | undefined
    let processes: string
    const inside = (): Environment => {
      if (!sandbox) throw new Error('there is no sandbox to test in')
      return sandbox.environment
    }
    const shell = async (command: string) => (await runCommand(inside(), { command, timeoutMs: 20_000 })).stdout
    /** Starts without what the previous turn has left. */
    const clean = (title: string, run: () => Promise<void>) =>
      test(title, async () => {
        await shell('rm -rf /home/user/* /tmp/*')
        await run()
      }, 60_000)

    /** Undefined when the engine cannot play the scene, such as a hanging model for an engine that has no model. */
    const scene = (title: string, what: Scene, run: (prompt: string) => Promise<void>) => {
      if (subject.stage(what) !== undefined) clean(title, () => run(subject.stage(what) ?? ''))
    }
    const play = async (prompt: string, more: Partial<TurnInit> = {}) => {
      const environment = inside()
      const context = { ...(subject.openModel && { openModel: subject.openModel }), ...more.context }
      const result = await playTurn({ engine: subject.engine, environment, prompt, ...more, context })
      // An engine does nothing that it does not claim.
      const unclaimed = result.events.filter(({ type }) => needs[type] && !claims(needs[type]))
      expect([unclaimed, result.end.status === 'waiting' && !claims('approvals') && !claims('clientTools')]).toEqual([
        [],
        false,
      ])
      return result
    }
    const claims = (feature: EngineFeature) => subject.engine.supports?.includes(feature) === true
    /** Aborts once `isTime` is true. Returns the result and how long the end took. */
    const cancelled = async (
      prompt: string,
      isTime: (event: { type: string }) => boolean,
      at?: () => Promise<void>,
      more: Partial<TurnInit> = {},
    ) => {
      const abort = new AbortController()
      let abortedAtMs = 0
      const cancel = () => {
        abortedAtMs ||= performance.now()
        abort.abort()
      }
      const running = play(prompt, {
        context: { ...more.context, signal: abort.signal },
        onEvent: event => isTime(event) && cancel(),
      })
      if (at) void at().then(cancel)
      const result = await running
      return { ...result, tookMs: performance.now() - abortedAtMs }
    }
    const listProcesses = () => shell('ls -d /proc/[0-9]* | wc -l')

    beforeAll(async () => {
      sandbox = await openSandbox()
      processes = await listProcesses()
    }, 60_000)
    afterAll(async () => {
      await sandbox?.close()
      await subject.close?.()
    }, 60_000)
    scene('says a text', { does: 'say', text: 'One two, three.' }, async prompt => {
      const result = await play(prompt)
      expect([result.end, result.text]).toEqual([{ status: 'completed' }, 'One two, three.'])
      expectGrammar(expect, result)
    })

    const run: Scene = { does: 'run', command: 'echo from-inside; id -u' }
    scene('runs a tool in the sandbox and gives its result', run, async prompt => {
      const result = await play(prompt)
      expect(result.end).toEqual({ status: 'completed' })
      expectGrammar(expect, result)
      const call = result.parts.find(({ type }) => type === 'tool-Bash')
      expect(call).toMatchObject({ state: 'output-available', input: { command: 'echo from-inside; id -u' } })
      // Some programs omit the last line break.
      expect(String(call?.output).trimEnd()).toBe('from-inside\n0')
    })

    scene('remembers the turns before', { does: 'remember' }, async () => {
      const first = await play(subject.stage({ does: 'say', text: 'first' }) ?? '')
      const second = await play(subject.stage({ does: 'run', command: 'echo two' }) ?? '', { history: first.thread })
      const third = await play(subject.stage({ does: 'remember' }) ?? '', { history: second.thread })
      expect([third.end, third.text]).toEqual([{ status: 'completed' }, '2'])
    })

    scene('ends in the middle of a text when it is cancelled', { does: 'say slowly' }, async prompt => {
      const result = await cancelled(prompt, ({ type }) => type === 'text')
      expect(result.end).toEqual({ status: 'cancelled' })
      expect(result.text).not.toBe('')
      expect(result.tookMs).toBeLessThan(GRACE_MS)
      expectGrammar(expect, result)
    })

    const sleep: Scene = { does: 'run', command: 'echo up > /tmp/up; setsid sleep 7301 & sleep 7301' }
    scene('kills its tool with all that it started when it is cancelled', sleep, async prompt => {
      // Some programs report a call a moment after it has begun.
      let isTold = false
      const isUp = () => until(async () => isTold && (await shell('cat /tmp/up 2>/dev/null')) === 'up\n')
      const listen = ({ type }: { type: string }) => {
        isTold ||= type === 'tool-call'
        return false
      }
      const result = await cancelled(prompt, listen, isUp)
      expect(await countSleepers(inside(), '7301')).toBe(0)
      expect(result.end).toEqual({ status: 'cancelled' })
      expect(result.tookMs).toBeLessThan(GRACE_MS)
      expect(result.parts.at(-1)).toMatchObject({ type: 'tool-Bash', state: 'output-error', errorText: 'cancelled' })
      expectGrammar(expect, result)
    })

    scene('ends while it waits for its model', { does: 'wait for its model for ever' }, async prompt => {
      const result = await cancelled(
        prompt,
        () => false,
        () => until(() => openCalls() > 0),
      )
      expect([result.end, result.parts]).toEqual([{ status: 'cancelled' }, []])
      expect(result.tookMs).toBeLessThan(GRACE_MS)
      await until(() => openCalls() === 0)
      expectGrammar(expect, result)
    })

    scene('ends when its model hangs after a word', { does: 'wait for ever after a word' }, async prompt => {
      const result = await cancelled(prompt, ({ type }) => type === 'text')
      expect(result.end).toEqual({ status: 'cancelled' })
      expect(result.text).not.toBe('')
      expect(result.tookMs).toBeLessThan(GRACE_MS)
      await until(() => openCalls() === 0)
      expectGrammar(expect, result)
    })

    clean('does nothing when it is cancelled before it begins', async () => {
      const prompt = subject.stage({ does: 'run', command: 'echo ran > /tmp/ran' }) ?? ''
      const result = await play(prompt, {
        context: { signal: AbortSignal.abort(), ...(subject.openModel && { openModel: subject.openModel }) },
      })
      expect(result.end).toEqual({ status: 'cancelled' })
      expect(await shell('ls /tmp')).toBe('')
    })

    scene('tells a failure before the first word', { does: 'fail at once' }, async prompt => {
      const result = await play(prompt)
      expect(result.end.status).toBe('failed')
      expect(result.end.error?.message).not.toBe('')
      expect(result.parts).toEqual([])
      expectGrammar(expect, result)
    })

    scene('keeps what it said before a failure', { does: 'fail after a word' }, async prompt => {
      const result = await play(prompt)
      expect(result.end.status).toBe('failed')
      expect(result.text).not.toBe('')
      expectGrammar(expect, result)
    })

    scene('goes on after calls that make no sense', { does: 'call badly' }, async prompt => {
      const result = await play(prompt)
      expect([result.end, result.text]).toEqual([{ status: 'completed' }, 'recovered'])
      expect(result.parts.filter(({ state }) => state === 'output-error')).toHaveLength(2)
      expectGrammar(expect, result)
    })

    scene('ends when its consumer leaves', { does: 'say slowly' }, async prompt => {
      const abort = new AbortController()
      const environment = inside()
      const running = subject.engine.run(
        { prompt: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: prompt }] }], history: [] },
        {
          ...{
            environment,
            cwd: '/home/user',
            env: {},
            options: {},
            signal: abort.signal,
            fetch,
            permissions,
            clientTools: {},
          },
          openModel: subject.openModel ?? (() => Promise.reject() as never),
        },
      )
      await running.next()
      abort.abort()
      expect((await running.return({ status: 'cancelled' })).done).toBe(true)
      await until(() => openCalls() === 0)
    })

    const stage: Stage = { kit, subject, scene, play, inside, shell }
    if (claims('approvals')) describeApprovals(stage)
    if (claims('clientTools')) describeClientTools(stage)
    if (subject.engine.supports?.includes('steering')) {
      const stopped = (prompt: string, at: () => Promise<void>, more: Partial<TurnInit>) =>
        cancelled(prompt, () => false, at, more)
      describeSteering({ expect, scene, play, cancelled: stopped, shell })
    }

    test('leaves no process behind', async () => {
      await until(async () => Number(await listProcesses()) <= Number(processes))
    })
  })
}
