import { isDeepStrictEqual } from 'node:util'
import type { CallAnswer, EngineContext, EngineEnd, EngineEvent, Permission } from '../../src/plugin-api/index.ts'
import { matchClientCalls } from './client-calls.ts'
import { OWN_SERVER } from './client-tools.ts'
import { describeDenial, NOT_DECIDED, WENT_ON } from './decisions.ts'
import type { ProgramCall, Verdict } from './program-call.ts'

/** What a conversation reports while a program answers. */
export interface AnswerSink {
  emit(event: EngineEvent): void
  /** Whether `ask` would allow the call at once, and a person has no part in it. */
  isFree(call: ProgramCall): boolean
  /** Decides on a call. `reply` is called once, perhaps only days later. */
  ask(call: ProgramCall, reply: (verdict: Verdict) => void): void
  /** The program calls a tool of the client. */
  callClient(call: ProgramCall, reply: (verdict: Verdict) => void): void
  /** A message of the model begins or is complete. An answer does not wait in the middle of one. */
  setWriting(isWriting: boolean): void
  end(end: EngineEnd): void
}

/** The turn that an answer is passed on to. */
export interface Listener extends Pick<EngineContext, 'permissions' | 'clientTools'> {
  /** `onTaken` is called when the event is stored. */
  emit(event: EngineEvent, onTaken?: () => void): void
}

/** A program's answer, which outlives the turns that wait for a person or the client. */
export interface Answer extends AnswerSink {
  /** Passes on what comes, and what came while no turn listened. Resolves when the answer ends, or waits. */
  listen(listener: Listener): Promise<EngineEnd>
  /** Gives what became of open calls. Calls that are not open are left out. */
  give(answers: readonly CallAnswer[]): void
  /** Replies to every open call that it is not decided, and to those that come after. Only the program ends the answer then. */
  abandon(): void
  /** Whether all of these calls are open. */
  waitsFor(answers: readonly CallAnswer[]): boolean
  /** What was kept for the next turn is too much. */
  readonly isFull: boolean
}

/** An approved call that the program is to make again. `isLate`: as a call of another reply. */
export interface ExpectedCall extends ProgramCall {
  isLate: boolean
}

/** Requests of calls that run side by side come one after the other. */
const SETTLE_MS = 100
/** While other calls run, a turn waits until nothing has come for so long, and not longer than that. */
const QUIET_MS = 2000
const MAX_RUNNING_MS = 60_000
const MAX_KEPT_CHARACTERS = 16 * 1024 * 1024

interface OpenCall {
  isClients: boolean
  reply: (verdict: Verdict) => void
}

/** Over 100 lines: one state of the calls, with a case for each thing that can happen to them. */
export function createAnswer(expected: ExpectedCall[] = []): Answer {
  let listener: Listener | undefined
  let rules: Pick<Listener, 'permissions' | 'clientTools'> | undefined
  let stop: ((end: EngineEnd) => void) | undefined
  let ended: EngineEnd | undefined
  let isWriting = false
  let isAbandoned = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let couldWaitSinceMs: number | undefined
  let kept: { event: EngineEvent; onTaken?: () => void }[] = []
  let keptCharacters = 0
  const open = new Map<string, OpenCall>()
  const called = new Set<string>()
  const running = new Set<string>()
  const clientCalls = matchClientCalls(showCall)
  /** Calls of the client's tools that the program has still to make: it makes them one after the other. */
  const unmade = new Set<string>()
  const early = new Map<string, CallAnswer>()
  /** Calls whose outcome is in the reply already. */
  const settled = new Set<string>()
  /** Approved calls that are made again, by their new ids. */
  const granted = new Map<string, ExpectedCall>()
  const aliases = new Map<string, string>()
  const heldBack = new Set<string>()

  const idOf = (callId: string) => aliases.get(callId) ?? callId
  const ownName = (name: string) => {
    const bare = name.startsWith(OWN_SERVER_PREFIX) ? name.slice(OWN_SERVER_PREFIX.length) : undefined
    return bare !== undefined && isClients(bare) ? bare : name
  }
  const isClients = (name: string) => Object.hasOwn(rules?.clientTools ?? {}, name)

  function pass(event: EngineEvent, onTaken?: () => void): void {
    if (listener) listener.emit(event, onTaken)
    else {
      keptCharacters += JSON.stringify(event).length
      if (keptCharacters <= MAX_KEPT_CHARACTERS) kept.push({ event, ...(onTaken && { onTaken }) })
    }
  }

  /** Ends the listening once all that is left is to wait. */
  function consider() {
    clearTimeout(timer)
    if (!listener || !stop) return
    if (ended) return leave(ended)
    if (open.size === 0 || isWriting) {
      couldWaitSinceMs = undefined
      return
    }
    couldWaitSinceMs ??= performance.now()
    const left = MAX_RUNNING_MS - (performance.now() - couldWaitSinceMs)
    const delay = running.size === 0 ? SETTLE_MS : Math.max(0, Math.min(QUIET_MS, left))
    timer = setTimeout(() => leave({ status: 'waiting' }), delay)
  }

  function leave(end: EngineEnd): void {
    const resolve = stop
    listener = undefined
    stop = undefined
    couldWaitSinceMs = undefined
    resolve?.(end)
  }

  /** The program waits until the event is stored: an approved call is made at most once. */
  const begin = (callId: string, reply: () => void) => pass({ type: 'tool-begin', callId }, reply)

  function showCall({ callId, name, input }: ProgramCall) {
    takeCall({ type: 'tool-call', callId, name, input })
  }

  function takeCall(event: Extract<EngineEvent, { type: 'tool-call' }>) {
    const { callId, input } = event
    const name = ownName(event.name)
    if (called.has(callId)) return
    called.add(callId)
    const known = isClients(name) ? clientCalls.findMade({ callId, name, input }) : undefined
    if (known !== undefined) return void aliases.set(callId, known)
    if (!isClients(name) && rules?.permissions.byOptionsAlone) running.add(callId)
    takeNewCall({ ...event, name })
    if (!isClients(name)) return
    unmade.add(callId)
    clientCalls.announce({ callId, name, input })
  }

  function takeNewCall(event: Extract<EngineEvent, { type: 'tool-call' }>) {
    const { callId, name, input } = event
    const index = expected.findIndex(each => each.name === name && isDeepStrictEqual(each.input, input))
    const [again] = index < 0 ? [] : expected.splice(index, 1)
    if (!again) return pass(event)
    if (again.isLate) pass(event)
    else aliases.set(callId, again.callId)
    // Without rules the program asks nobody.
    if (rules?.permissions.byOptionsAlone) begin(again.callId, () => {})
    else granted.set(callId, again)
  }

  function takeEvent(event: EngineEvent) {
    switch (event.type) {
      case 'tool-input': {
        const name = ownName(event.name)
        // It may be the call that the reply has already: its input decides.
        if (event.name && expected.some(each => each.name === name)) heldBack.add(event.callId)
        if (!heldBack.has(event.callId)) pass({ ...event, name })
        return
      }
      case 'tool-call':
        return takeCall(event)
      case 'tool-result':
        running.delete(event.callId)
        running.delete(idOf(event.callId))
        if (called.has(event.callId) && !settled.has(idOf(event.callId))) pass({ ...event, callId: idOf(event.callId) })
        return
      case 'tool-progress':
        return pass({ ...event, callId: idOf(event.callId) })
      default:
        return pass(event)
    }
  }

  const decide = ({ name, input, isReadOnly = false }: ProgramCall): Permission =>
    rules?.permissions.decide(ownName(name), input, { isReadOnly }) ?? { decision: 'deny' }

  return {
    waitsFor: answers => !ended && answers.every(({ callId }) => open.has(callId) || unmade.has(callId)),
    get isFull() {
      return keptCharacters > MAX_KEPT_CHARACTERS
    },
    emit(event) {
      takeEvent(event)
      consider()
    },
    isFree(call) {
      const { decision } = decide(call)
      return (
        !granted.has(call.callId) && (decision === 'allow' || (decision === 'ask' && isClients(ownName(call.name))))
      )
    },
    ask(call, reply) {
      const { callId } = call
      const name = ownName(call.name)
      const { decision, reason } = decide(call)
      const allow = () => {
        running.add(callId)
        reply({ type: 'allowed' })
      }
      const again = granted.get(callId)
      if (again) {
        granted.delete(callId)
        begin(again.callId, allow)
      } else if (decision === 'deny') reply({ type: 'denied', message: reason ?? `${name} is not allowed.` })
      else if (decision === 'allow' || isClients(name)) allow()
      else {
        // A sub-agent's calls are not shown otherwise.
        if (!called.has(callId)) showCall(call)
        if (granted.has(callId)) return this.ask(call, reply)
        open.set(callId, { isClients: false, reply })
        pass({ type: 'approval-request', callId, ...(reason !== undefined && { reason }) })
      }
      consider()
    },
    callClient(call, reply) {
      clientCalls.make(call, callId => {
        running.delete(callId)
        unmade.delete(callId)
        if (isAbandoned) return reply({ type: 'error', error: WENT_ON })
        open.set(callId, { isClients: true, reply })
        const answer = early.get(callId)
        if (answer) this.give([answer])
        consider()
      })
    },
    setWriting(is) {
      isWriting = is
      consider()
    },
    end(end) {
      ended ??= end
      consider()
    },
    listen(next) {
      rules = next
      listener = next
      const before = kept
      kept = []
      keptCharacters = 0
      for (const { event, onTaken } of before) pass(event, onTaken)
      return new Promise(resolve => {
        stop = resolve
        consider()
      })
    },
    give(answers) {
      for (const answer of answers) {
        const { callId } = answer
        const call = open.get(callId)
        if (!call && unmade.has(callId)) early.set(callId, answer)
        if (!call) continue
        open.delete(callId)
        if (answer.type === 'approved') {
          running.add(callId)
          begin(callId, () => call.reply({ type: 'allowed' }))
          continue
        }
        settled.add(callId)
        if (answer.type === 'denied') call.reply({ type: 'denied', message: describeDenial(answer.reason) })
        else call.reply(answer)
      }
      consider()
    },
    abandon() {
      isAbandoned = true
      for (const { isClients, reply } of open.values()) {
        reply(isClients ? { type: 'error', error: WENT_ON } : { type: 'denied', message: NOT_DECIDED })
      }
      open.clear()
      consider()
    },
  }
}

const OWN_SERVER_PREFIX = `mcp__${OWN_SERVER}__`
