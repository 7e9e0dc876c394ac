import type { EngineEvent, Steering, StoredMessage } from '../plugin-api/index.ts'
import { expectGrammar } from './grammar.ts'
import type { Expect } from './kit.ts'
import type { Scene } from './scene.ts'
import { type TurnInit, type TurnResult, user } from './turn.ts'
import { until } from './until.ts'

export interface SteeringSuite {
  expect: Expect
  scene(title: string, what: Scene, run: (prompt: string) => Promise<void>): void
  play(prompt: string, more?: Partial<TurnInit>): Promise<TurnResult>
  /** Runs a turn and aborts it once `at` resolves. */
  cancelled(prompt: string, at: () => Promise<void>, more: Partial<TurnInit>): Promise<TurnResult>
  shell(command: string): Promise<string>
}

const WORD = 'plover'
/** Runs until the test makes the file. */
const command = 'echo up > /tmp/up; until test -e /tmp/go; do sleep 0.1; done; echo went'

/** Tests what an engine promises that takes messages while it works. */
export function describeSteering({ expect, scene, play, cancelled, shell }: SteeringSuite): void {
  const isUp = () => until(async () => (await shell('cat /tmp/up 2>/dev/null')) === 'up\n')
  const steeredIn = (events: readonly EngineEvent[]) =>
    events.flatMap(event => (event.type === 'steered' ? [event.messageId] : []))

  scene('heeds what the user says while it works', { does: 'heed', command, word: WORD }, async prompt => {
    const source = createSource()
    const running = play(prompt, { context: { steering: source } })
    await isUp()
    const message = source.say(WORD)
    await shell('touch /tmp/go')
    const { end, events, text, ...result } = await running
    expect([end, steeredIn(events)]).toEqual([{ status: 'completed' }, [message.id]])
    expect(text).toContain(WORD)
    const order = events.map(({ type }) => type)
    expect(order.indexOf('steered')).toBeGreaterThan(order.indexOf('tool-result'))
    expectGrammar(expect, { ...result, end, events, text })
    // A later turn counts the message among those that it knows.
    const thread = [result.thread[0], message, result.thread.at(-1)].filter(each => each !== undefined)
    const session = events.findLast(event => event.type === 'session')
    const turn = session?.type === 'session' ? { engineSessionId: session.engineSessionId } : {}
    const next = await play(prompt, { history: thread, turn })
    expect([next.end, next.events.filter(({ type }) => type === 'steered')]).toEqual([{ status: 'completed' }, []])
  })

  scene(
    'goes on for what the user says at its end, or leaves it',
    { does: 'heed at its end', word: WORD },
    async prompt => {
      const source = createSource()
      let message: StoredMessage | undefined
      const onEvent = (event: EngineEvent) => {
        if (event.type === 'text') message ??= source.say(WORD)
      }
      const { end, events, text } = await play(prompt, { context: { steering: source }, onEvent })
      expect(end).toEqual({ status: 'completed' })
      expect(steeredIn(events)).toEqual(text.includes(WORD) ? [message?.id] : [])
    },
  )

  scene(
    'does not go on when it is cancelled with words that wait',
    { does: 'heed', command, word: WORD },
    async prompt => {
      const source = createSource()
      const saying = async () => {
        await isUp()
        source.say(WORD)
      }
      const { end, events, text } = await cancelled(prompt, saying, { context: { steering: source } })
      expect([end, steeredIn(events)]).toEqual([{ status: 'cancelled' }, []])
      expect(text.includes(WORD)).toBe(false)
    },
  )
}

/** Messages as a server gives them to a turn. */
function createSource(): Steering & { say(text: string): StoredMessage } {
  let waiting: StoredMessage[] = []
  const listeners = new Set<() => void>()
  return {
    take() {
      const taken = waiting
      waiting = []
      return taken
    },
    onMessage(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    say(text) {
      const message = user(text)
      waiting.push(message)
      for (const listener of listeners) listener()
      return message
    },
  }
}
