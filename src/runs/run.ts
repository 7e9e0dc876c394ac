import { settlesWithin } from '../async/timeout.ts'
import type { Turns } from '../async/turns.ts'
import { writeWhenFree } from '../db/busy.ts'
import { insertChunks } from '../db/chunks.ts'
import { newId } from '../db/id.ts'
import { appendMessages } from '../db/messages.ts'
import { inTransaction } from '../db/open.ts'
import { insertRun, saveRunUsage } from '../db/runs.ts'
import { setEngineSession, startThread } from '../db/threads.ts'
import { roundUsd } from '../db/usd.ts'
import { ApiError } from '../errors.ts'
import type { RunStatus, Usage } from '../model/run.ts'
import type { EngineEnd, StoredMessage } from '../plugin-api/index.ts'
import type { Chunk } from '../stream/chunk.ts'
import type { Ending } from '../stream/ending.ts'
import { createMessage, type MessageBuilder } from '../stream/message.ts'
import type { StreamProfile } from '../stream/project.ts'
import { replayFrames } from '../stream/replay.ts'
import type { RunEvent } from '../stream/run-event.ts'
import { createWriter, type Writer } from '../stream/writer.ts'
import { prepareEnding } from './ending.ts'
import { describeFault } from './fault.ts'
import { keepStoring, outlasts, type StoringOptions } from './keep-storing.ts'
import { createLog, type Log } from './log.ts'
import type { PageCache } from './page-cache.ts'
import type { RunInit } from './run-init.ts'

/** Runs one turn of an engine. After an abort it ends within the grace time, with every process that it started dead. */
export type Execute = (signal: AbortSignal, runId: string) => AsyncGenerator<RunEvent, EngineEnd>

/** How a run ended, for the caller that cancelled it. */
export interface Receipt {
  runId: string
  threadId: string
  chunks: number
  durationMs: number
}

/** The facts about an ended run, for whoever counts them. */
export interface RunEnd extends Usage {
  status: Exclude<RunStatus, 'active'>
  durationMs: number
}

/** What a run gets from the registry. */
export interface RunHost extends StoringOptions {
  /** How long an engine may take to end after its abort. */
  graceMs: number
  pages: PageCache
  /** The turns in which readers are woken. */
  turns: Turns
  /** Called once, when the end is stored or can no longer be stored, and before a reader sees it. */
  onEnd: (end: RunEnd) => void
}

/** An engine without a pause would starve every other request of the process. */
const YIELD_EVERY_MS = 8

/** A reply is in memory and in the database, and a program in a sandbox may write without end. */
const MAX_REPLY_CHARACTERS = 64 * 1024 * 1024

/** One assistant turn: it stores an engine's events in a log, and ends once. The registry makes it. */
export class Run {
  readonly threadId: string
  readonly sandboxId: string
  readonly background: boolean
  /** The id of the reply, from its first chunk to the thread. */
  readonly messageId: string
  /** What readers follow. */
  readonly log: Log
  /** Resolves when the run has ended and its closing chunks can be read. Never rejects. */
  readonly finished: Promise<Receipt>
  readonly #resolve: (receipt: Receipt) => void
  readonly #host: RunHost
  readonly #abort = new AbortController()
  readonly #reply: StoredMessage | undefined
  readonly #profile: StreamProfile
  readonly #answers: string | undefined
  readonly #record: RunInit['record']
  readonly #writer: Writer
  readonly #message: MessageBuilder
  readonly #usage: Usage = { inputTokens: 0, outputTokens: 0, costUsd: 0 }
  readonly #startedAtMs = performance.now()
  #model: string
  #events: AsyncGenerator<RunEvent, EngineEnd> | undefined
  #requestedEnding: Ending | undefined
  #isOver = false
  #hasBegun = false
  /** Chunks that are not stored yet. */
  #pending: Chunk[] = []
  readonly #silenced = Promise.withResolvers<void>()
  #characters = 0

  /** Stores the run as active; its engine starts right after the caller's turn. Throws when the thread is gone. */
  constructor(
    readonly id: string,
    init: RunInit,
    execute: Execute,
    host: RunHost,
  ) {
    this.threadId = init.threadId
    this.sandboxId = init.sandboxId
    this.background = init.background ?? false
    this.#host = host
    this.#model = init.model ?? init.engine
    const { reply, profile = 'contract', clientTools = [] } = init
    this.messageId = reply?.id ?? newId('msg')
    this.#reply = reply
    this.#profile = profile
    this.#answers = init.answers
    this.#record = init.record
    const before = reply?.parts ?? []
    this.#writer = createWriter({ messageId: this.messageId, before, clientTools })
    this.#message = createMessage(before)
    this.log = createLog(host, { runId: id, profile })
    const { promise, resolve } = Promise.withResolvers<Receipt>()
    this.finished = promise
    this.#resolve = resolve
    inTransaction(host.db, () => {
      const { threadId, sandboxId, background, messageId } = this
      insertRun(host.db, { id, threadId, sandboxId, background, messageId, profile, model: this.#model })
      appendMessages(host.db, threadId, init.messages ?? [])
      startThread(host.db, threadId)
      this.#pending = this.#writer.start()
      for (const event of init.opening ?? []) this.#pending.push(...this.#writer.write(event))
      this.#store()
    })
    queueMicrotask(() => void this.#pump(execute))
  }

  /** Resolves when the reply is complete. Its end may not be stored yet. */
  get silenced(): Promise<void> {
    return this.#silenced.promise
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get readerCount(): number {
    return this.log.readerCount
  }

  /** The first frames for a client that resumes, in place of the first chunk. Undefined when the run's own log is all. */
  get preface(): Uint8Array | undefined {
    return this.#reply && replayFrames(this.messageId, this.#reply.parts, this.#profile)
  }

  /** Ends the run as cancelled, unless it has ended. Resolves as `finished` does. Idempotent. */
  cancel(): Promise<Receipt> {
    return this.#stop({ status: 'cancelled' })
  }

  /** Ends the run as interrupted by the server. Otherwise like `cancel`. */
  interrupt(errorText: string): Promise<Receipt> {
    return this.#stop({ status: 'interrupted', errorText })
  }

  #stop(ending: Ending): Promise<Receipt> {
    if (this.#isOver || this.#requestedEnding) return this.finished
    this.#requestedEnding = ending
    this.#abort.abort()
    const timer = setTimeout(() => {
      this.#host.log(`${this.id}: the engine did not end within ${this.#host.graceMs} ms of its abort`)
      void this.#cleanUp()
      this.#finish(ending)
    }, this.#host.graceMs)
    void this.finished.then(() => clearTimeout(timer))
    return this.finished
  }

  async #pump(execute: Execute): Promise<void> {
    try {
      if (this.#requestedEnding) return this.#finish(this.#requestedEnding)
      this.#events = execute(this.#abort.signal, this.id)
      let yieldedAtMs = performance.now()
      for (;;) {
        const step = await this.#events.next()
        if (this.#isOver) return
        if (step.done) return this.#finish(this.#toEnding(step.value))
        await this.#take(step.value)
        if (performance.now() - yieldedAtMs < YIELD_EVERY_MS) continue
        await new Promise(setImmediate)
        yieldedAtMs = performance.now()
      }
    } catch (error) {
      if (this.#isOver) return
      const ending: Ending = { status: 'failed', errorText: this.#explain(error) }
      this.#abort.abort()
      await settlesWithin(this.#host.graceMs, this.#cleanUp())
      this.#finish(ending)
    }
  }

  async #take(event: RunEvent): Promise<void> {
    if (event.type === 'notice') this.#host.log(`${this.id}: ${event.level} ${event.code}`)
    if (event.type === 'session' || event.type === 'usage') await this.#meter(event)
    // After an abort, text is no longer part of the reply; what the engine used still counts.
    else if (!this.#requestedEnding) {
      const chunks = this.#writer.write(event)
      if (chunks.length === 0) return
      this.#pending.push(...chunks)
      await writeWhenFree(this.#host.db, () => this.#store(event))
    }
    if (this.#characters > MAX_REPLY_CHARACTERS) {
      void this.#stop({ status: 'failed', errorText: 'The reply is longer than 64 MB, and was ended.' })
    }
  }

  async #meter(event: Extract<RunEvent, { type: 'session' | 'usage' }>): Promise<void> {
    const { db } = this.#host
    if (event.model) this.#model = event.model
    if (event.type === 'usage') {
      this.#usage.inputTokens += Math.round(amount(event.inputTokens))
      this.#usage.outputTokens += Math.round(amount(event.outputTokens))
      this.#usage.costUsd = roundUsd(this.#usage.costUsd + amount(event.costUsd))
    }
    await writeWhenFree(db, () =>
      inTransaction(db, () => {
        if (event.type === 'session') setEngineSession(db, this.threadId, event.engineSessionId)
        saveRunUsage(db, this.id, this.#model, this.#usage)
      }),
    )
  }

  /** Stores the pending chunks and shows them to readers. Once the run is over, `#end` does this. */
  #store(event?: RunEvent): void {
    if (this.#pending.length === 0 || this.#isOver) return
    const lines = this.#pending.map(chunk => JSON.stringify(chunk))
    const insert = () => insertChunks(this.#host.db, this.id, this.log.stored + 1, lines)
    const record = this.#record
    if (!event || !record) insert()
    else
      inTransaction(this.#host.db, () => {
        insert()
        record(event, this)
      })
    this.#hasBegun ||= event !== undefined
    for (const line of lines) this.#characters += line.length
    for (const chunk of this.#pending) this.#message.apply(chunk)
    this.#pending = []
    this.log.show(lines)
  }

  #finish(ending: Ending): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#silenced.resolve()
    void this.#end(this.#requestedEnding ?? ending)
  }

  async #end(ending: Ending): Promise<void> {
    const { id, threadId, sandboxId } = this
    const durationMs = Math.round(performance.now() - this.#startedAtMs)
    const state = { id, threadId, sandboxId, model: this.#model, usage: this.#usage, durationMs }
    const goesOn = this.#reply !== undefined
    const isUnbegun = goesOn && !this.#hasBegun
    const reply = { messageId: this.messageId, goesOn, isUnbegun, answers: this.#answers }
    const parts = { ...reply, chunks: this.log.stored, writer: this.#writer, message: this.#message }
    const prepared = prepareEnding({ ...state, ...parts }, ending, this.#pending)
    const isStored = await keepStoring(this.#host, this, prepared)
    this.#host.onEnd({ status: prepared.status, durationMs, ...this.#usage })
    const isShown = isStored && (await outlasts(this.#host, id))
    if (isShown) {
      this.log.show(prepared.chunks)
      this.log.showStored()
    }
    this.log.end(!isShown)
    this.#resolve({ runId: id, threadId, chunks: this.log.count, durationMs })
  }

  /** Lets the generator clean up. It may never return; its events are ignored by then. */
  async #cleanUp(): Promise<void> {
    try {
      await this.#events?.return({ status: 'cancelled' })
    } catch {
      // The run has its ending already.
    }
  }

  #toEnding({ status, error }: EngineEnd): Ending {
    if (status === 'completed' || status === 'cancelled') return { status }
    if (status === 'waiting' && this.#writer.waitingCalls.length > 0) return { status }
    return { status: 'failed', errorText: error?.message ?? 'The agent failed.' }
  }

  #explain(error: unknown): string {
    if (error instanceof ApiError) return error.message
    if (!this.#requestedEnding) this.#host.log(`${this.id}: the engine failed: ${describeFault(error)}`, 'error')
    return `The agent failed unexpectedly (${this.id}).`
  }
}

const amount = (value: number | undefined) => (value !== undefined && Number.isFinite(value) && value > 0 ? value : 0)
