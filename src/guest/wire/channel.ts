import { ApiError, messageOf } from '../../errors.ts'
import { Call } from './call.ts'
import { createDecoder, encodeFrame, type Frame, json, type Kind, kinds, parse } from './frame.ts'

/** More calls at once than this are refused: a peer cannot make the other side hold unbounded state. */
const MAX_CALLS = 4096

/** Each side's first id. Ids go up by two, so both sides can open calls. */
const firstCall = { host: 1, guest: 2 } as const

/** Bytes that wait for a slow peer. The windows of our own calls use at most two thirds of this. */
const MAX_UNSENT_BYTES = 96 * 1024 * 1024

/** The byte stream under a channel: a Duplex of node:stream, or something leaner. */
export interface ChannelStream {
  /** The number of written bytes that wait for the peer to read. */
  readonly writableLength: number
  /** Takes all bytes, however many wait already. */
  write(bytes: Uint8Array): unknown
  destroy(): unknown
  on(event: 'data', listener: (bytes: Buffer) => void): unknown
  on(event: 'end' | 'error' | 'close', listener: () => void): unknown
}

export interface ChannelOptions {
  side: keyof typeof firstCall
  /** Takes the peer's calls. Without it, a call of the peer's ends the channel. */
  onOpen?: (call: Call, request: unknown) => void
  /** The longest frame that the peer may send; a longer one ends the channel. JSON takes much time and memory to read. */
  maxPayloadBytes?: number
  /** How many calls the peer may have open; one more ends the channel. */
  maxPeerCalls?: number
}

/**
 * Many calls over one byte stream, the same at both ends. A call is opened with a JSON request, carries bytes in lanes
 * with a window each, and is closed with a JSON result. What the peer sends is not trusted: a frame that breaks the
 * rules ends the channel.
 */
export class Channel {
  /** Resolves when the stream is gone, however it went. */
  readonly closed: Promise<void>
  /** The peer's first frame. Rejects when the channel closes before it. */
  readonly hello: Promise<unknown>

  readonly #socket: ChannelStream
  readonly #calls = new Map<number, Call>()
  readonly #options: ChannelOptions
  readonly #hello = Promise.withResolvers<unknown>()
  readonly #closed = Promise.withResolvers<void>()
  #pending: Buffer[] = []
  #nextCall: number
  #peerCalls = 0
  #isGreeted = false
  #failure: ApiError | undefined

  constructor(socket: ChannelStream, options: ChannelOptions) {
    this.#socket = socket
    this.#options = options
    this.#nextCall = firstCall[options.side]
    this.closed = this.#closed.promise
    this.hello = this.#hello.promise
    this.hello.catch(() => {})
    const decode = createDecoder(frame => this.#receive(frame), options.maxPayloadBytes)
    socket.on('data', (bytes: Buffer) => {
      try {
        decode(bytes)
      } catch (error) {
        this.close(new ApiError('sandbox_unavailable', `The sandbox broke the protocol: ${messageOf(error)}`))
      }
    })
    socket.on('error', () => this.close())
    socket.on('end', () => this.close())
    socket.on('close', () => this.close())
  }

  get isOpen(): boolean {
    return this.#failure === undefined
  }

  get callCount(): number {
    return this.#calls.size
  }

  get peerCallCount(): number {
    return this.#peerCalls
  }

  /** Starts a call. On a channel that is gone, the call it gives has already failed. */
  open(request: unknown): Call {
    const id = this.#nextId()
    const call = this.#add(id)
    if (this.#failure) call.fail(this.#failure)
    else this.write(kinds.open, id, json(request))
    return call
  }

  sendHello(value: unknown): void {
    this.write(kinds.hello, 0, json(value))
  }

  /** Frames written in one turn of the event loop, with its promises, leave in one write. Bounded by the lanes' windows. */
  write(kind: Kind, call: number, ...parts: readonly Uint8Array[]): void {
    if (this.#failure) return
    if (this.#pending.length === 0) process.nextTick(() => this.#flush())
    this.#pending.push(encodeFrame(kind, call, ...parts))
  }

  forget(id: number): void {
    if (this.#calls.delete(id) && !this.#isOwn(id)) this.#peerCalls--
  }

  /** Calls that are open fail with the reason. */
  close(reason = new ApiError('sandbox_unavailable', 'The connection to the sandbox was lost.')): void {
    if (this.#failure) return
    this.#flush()
    this.#failure = reason
    this.#socket.destroy()
    for (const call of [...this.#calls.values()]) call.fail(reason)
    this.#calls.clear()
    this.#hello.reject(reason)
    this.#closed.resolve()
  }

  #flush(): void {
    const frames = this.#pending
    this.#pending = []
    if (this.#failure) return
    for (const each of inWrites(frames)) this.#socket.write(each)
  }

  #add(id: number): Call {
    const call = new Call(id, this)
    this.#calls.set(id, call)
    return call
  }

  #receive(frame: Frame): void {
    if (frame.kind === kinds.hello) this.#greeted(frame)
    else if (frame.kind === kinds.open) this.#opened(frame)
    // A call that has ended here may still have frames on their way.
    else this.#calls.get(frame.call)?.receive(frame)
  }

  #greeted({ payload }: Frame): void {
    if (this.#isGreeted) throw new Error('a second hello')
    this.#isGreeted = true
    this.#hello.resolve(parse(payload))
  }

  #opened(frame: Frame): void {
    const { onOpen, maxPeerCalls = MAX_CALLS } = this.#options
    if (!onOpen || this.#isOwn(frame.call) || this.#calls.has(frame.call)) {
      throw new Error('a call that was not expected')
    }
    if (this.#peerCalls >= maxPeerCalls) throw new Error('too many calls at once')
    if (this.#socket.writableLength > MAX_UNSENT_BYTES) throw new Error('a peer that does not read')
    const request = parse(frame.payload)
    this.#peerCalls++
    onOpen(this.#add(frame.call), request)
  }

  #isOwn(id: number): boolean {
    return id % 2 === firstCall[this.#options.side] % 2
  }

  /** Ids are 32 bits long; those in use are not given again. */
  #nextId(): number {
    let id = this.#nextCall
    while (this.#calls.has(id)) id = (id + 2) >>> 0
    this.#nextCall = (id + 2) >>> 0
    return id
  }
}

/** A frame of this size leaves by itself: copying it beside others costs more than a write. */
const LARGE_BYTES = 32 * 1024

/** At most this many bytes leave in one write. */
function* inWrites(frames: readonly Buffer[]): Generator<Buffer, void> {
  let small: Buffer[] = []
  const together = () => {
    const [first] = small
    const all = small.length === 1 && first ? first : Buffer.concat(small)
    small = []
    return all
  }
  for (const frame of frames) {
    if (frame.byteLength < LARGE_BYTES) small.push(frame)
    else {
      if (small.length > 0) yield together()
      yield frame
    }
  }
  if (small.length > 0) yield together()
}
