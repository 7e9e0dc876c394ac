import type { ApiError } from '../../errors.ts'
import { type Frame, json, type Kind, kinds, parse } from './frame.ts'

/** The byte streams of a call: up from the side that opened it, down and error to it. */
export const lanes = { up: 0, down: 1, error: 2 } as const

export type Lane = (typeof lanes)[keyof typeof lanes]

/** What a lane's sender may send before its reader has taken any of it. */
const WINDOW_BYTES = 256 * 1024
/** One answer to a reader of a process has at most this many bytes. */
const PIECE_BYTES = 128 * 1024

interface Incoming {
  chunks: Buffer[]
  unread: number
  uncredited: number
  ended: boolean
  discarding: boolean
  wake: (() => void) | undefined
  /** The bytes that came past the channel. */
  poured: Buffer[]
  pouredBytes: number
  /** Called when some of them were taken. */
  hasRoom: () => void
}

interface Outgoing {
  credit: number
  wake: (() => void) | undefined
}

/** What a call needs of the channel that made it. */
interface Wire {
  write(kind: Kind, call: number, ...parts: readonly Uint8Array[]): void
  /** The call has ended. */
  forget(id: number): void
}

/** One request, its lanes of bytes, and its result. Made by a Channel. */
export class Call {
  /** What the other side closes the call with. Rejects only when the channel is lost. */
  readonly result: Promise<unknown>
  /** Called with each control message of the other side. */
  onControl: (message: unknown) => void = () => {}

  /** Made when it is asked for: the side that answers never does. */
  #reply: PromiseWithResolvers<unknown> | undefined
  readonly #result = Promise.withResolvers<unknown>()
  readonly #incoming: [Incoming, Incoming, Incoming] = [incoming(), incoming(), incoming()]
  readonly #outgoing: [Outgoing, Outgoing, Outgoing] = [outgoing(), outgoing(), outgoing()]
  #failure: ApiError | undefined
  /** The other side's first answer, or what it closed the call with before. */
  #first: { reply: unknown } | { closed: unknown } | undefined
  #isOver = false

  constructor(
    readonly id: number,
    private readonly wire: Wire,
  ) {
    this.result = this.#result.promise
    this.result.catch(() => {})
  }

  /** The other side's first answer. Rejects when the call is closed before. */
  get reply(): Promise<unknown> {
    if (!this.#reply) {
      this.#reply = Promise.withResolvers()
      this.#reply.promise.catch(() => {})
      this.#settleReply()
    }
    return this.#reply.promise
  }

  get isOver(): boolean {
    return this.#isOver
  }

  answer(value: unknown): void {
    if (!this.#isOver) this.wire.write(kinds.reply, this.id, json(value))
  }

  control(message: unknown): void {
    if (!this.#isOver) this.wire.write(kinds.control, this.id, json(message))
  }

  /** Ends the call from this side; nothing is sent or taken after it. */
  close(result: unknown = {}): void {
    if (this.#isOver) return
    this.wire.write(kinds.close, this.id, json(result))
    this.#finish(result)
  }

  /** Resolves when the bytes have been handed on, which waits while the reader's window is full. */
  async send(lane: Lane, bytes: Uint8Array): Promise<void> {
    const state = this.#outgoing[lane]
    for (let offset = 0; offset < bytes.byteLength; ) {
      while (state.credit === 0 && !this.#isOver) await new Promise<void>(resolve => (state.wake = resolve))
      if (this.#isOver) return
      const size = Math.min(bytes.byteLength - offset, state.credit, PIECE_BYTES)
      state.credit -= size
      this.wire.write(kinds.data, this.id, laneByte[lane], bytes.subarray(offset, offset + size))
      offset += size
    }
  }

  /** No more bytes come in this lane. */
  end(lane: Lane): void {
    if (!this.#isOver) this.wire.write(kinds.end, this.id, laneByte[lane])
  }

  /** The next bytes of a lane; undefined at its end. One reader a lane. Throws when the channel was lost. */
  async read(lane: Lane): Promise<Buffer | undefined> {
    const state = this.#incoming[lane]
    for (;;) {
      const poured = state.poured.shift()
      if (poured) {
        state.pouredBytes -= poured.byteLength
        state.hasRoom()
        return poured
      }
      const chunk = nextPiece(state.chunks)
      if (chunk) {
        this.#credit(lane, state, chunk.byteLength)
        return chunk
      }
      if (this.#failure) throw this.#failure
      if (state.ended || this.#isOver) return undefined
      await new Promise<void>(resolve => (state.wake = resolve))
    }
  }

  /** Adds bytes of a lane that came another way. Waits while more than a window of them is not read. */
  async pour(lane: Lane, bytes: Buffer): Promise<void> {
    const state = this.#incoming[lane]
    if (state.discarding || this.#isOver) return
    state.poured.push(bytes)
    state.pouredBytes += bytes.byteLength
    wake(state)
    while (state.pouredBytes > WINDOW_BYTES && !this.#isOver)
      await new Promise<void>(resolve => (state.hasRoom = resolve))
  }

  /** Takes and drops all that comes in a lane from now on. */
  discard(lane: Lane): void {
    const state = this.#incoming[lane]
    state.discarding = true
    state.poured = []
    state.pouredBytes = 0
    state.hasRoom()
    for (const chunk of state.chunks.splice(0)) this.#credit(lane, state, chunk.byteLength)
    state.wake?.()
  }

  /** True when the other side has said that no more bytes come in a lane. */
  readonly hasEnded = (lane: Lane): boolean => this.#incoming[lane].ended

  readable(lane: Lane): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async controller => {
          const chunk = await this.read(lane)
          if (chunk) controller.enqueue(chunk)
          else controller.close()
        },
        cancel: () => this.discard(lane),
      },
      { highWaterMark: 0 },
    )
  }

  /** A frame of the other side. Throws when it breaks the rules. */
  receive({ kind, payload }: Frame): void {
    if (kind === kinds.reply) this.#answered(parse(payload))
    else if (kind === kinds.control) this.onControl(parse(payload))
    else if (kind === kinds.close) this.#finish(parse(payload))
    else this.#receiveOnLane(kind, laneOf(payload), payload)
  }

  /** The channel is gone, and this says why. */
  fail(error: ApiError): void {
    if (this.#isOver) return
    this.#failure = error
    this.#settleReply()
    this.#result.reject(error)
    this.#over()
  }

  #receiveOnLane(kind: Kind, lane: Lane, payload: Buffer): void {
    if (kind === kinds.credit) {
      const state = this.#outgoing[lane]
      state.credit += payload.readUInt32BE(1)
      // More than was taken from the window: what is sent would pile up before a reader that does not read.
      if (state.credit > WINDOW_BYTES) throw new Error('more credit than the window')
      wake(state)
      return
    }
    const state = this.#incoming[lane]
    if (kind === kinds.end) state.ended = true
    else this.#take(lane, state, payload.subarray(1))
    wake(state)
  }

  #take(lane: Lane, state: Incoming, bytes: Buffer): void {
    if (state.ended) throw new Error('bytes after the end of a lane')
    // No window counts an empty frame, so a peer could send them without end.
    if (bytes.byteLength === 0) return
    state.unread += bytes.byteLength
    if (state.unread > WINDOW_BYTES) throw new Error('more bytes than the window allows')
    if (state.discarding) this.#credit(lane, state, bytes.byteLength)
    else state.chunks.push(bytes)
  }

  #credit(lane: Lane, state: Incoming, byteLength: number): void {
    state.uncredited += byteLength
    if (state.uncredited < WINDOW_BYTES / 2 || this.#isOver) return
    const amount = Buffer.allocUnsafe(4)
    amount.writeUInt32BE(state.uncredited)
    state.unread -= state.uncredited
    state.uncredited = 0
    this.wire.write(kinds.credit, this.id, laneByte[lane], amount)
  }

  #answered(reply: unknown): void {
    this.#first ??= { reply }
    this.#settleReply()
  }

  #settleReply(): void {
    if (!this.#reply) return
    if (!this.#first) {
      if (this.#failure) this.#reply.reject(this.#failure)
    } else if ('reply' in this.#first) this.#reply.resolve(this.#first.reply)
    else this.#reply.reject(new CallClosed(this.#first.closed))
  }

  #finish(result: unknown): void {
    this.#first ??= { closed: result }
    this.#settleReply()
    this.#result.resolve(result)
    this.#over()
  }

  #over(): void {
    this.#isOver = true
    this.wire.forget(this.id)
    for (const state of this.#incoming) {
      // Its reader may still come, but nobody waits for that.
      state.hasRoom()
      wake(state)
    }
    for (const state of this.#outgoing) wake(state)
  }
}

/** The other side closed the call without a reply; `result` says why. */
export class CallClosed extends Error {
  constructor(readonly result: unknown) {
    super('the call was closed')
  }
}

/** Takes all that waits, up to a piece: many small chunks cost a slow reader no more than one large one. */
function nextPiece(chunks: Buffer[]): Buffer | undefined {
  let bytes = 0
  let count = 0
  while (count < chunks.length && bytes + (chunks[count]?.byteLength ?? 0) <= PIECE_BYTES) {
    bytes += chunks[count]?.byteLength ?? 0
    count++
  }
  return count > 1 ? Buffer.concat(chunks.splice(0, count), bytes) : chunks.shift()
}

const incoming = (): Incoming => ({
  chunks: [],
  unread: 0,
  uncredited: 0,
  ended: false,
  discarding: false,
  wake: undefined,
  poured: [],
  pouredBytes: 0,
  hasRoom: () => {},
})

const outgoing = (): Outgoing => ({ credit: WINDOW_BYTES, wake: undefined })

const laneByte = [Uint8Array.of(0), Uint8Array.of(1), Uint8Array.of(2)] as const

function laneOf(payload: Buffer): Lane {
  const lane = payload[0]
  if (lane !== 0 && lane !== 1 && lane !== 2) throw new Error('a frame for no lane')
  return lane
}

function wake(state: { wake: (() => void) | undefined }): void {
  const waiting = state.wake
  state.wake = undefined
  waiting?.()
}
