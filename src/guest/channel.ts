import type { Duplex } from 'node:stream'
import { ApiError, messageOf } from '../errors.ts'
import { Call } from './call.ts'
import { createDecoder, encodeFrame, type Frame, json, type Kind, kinds, parse } from './wire.ts'

/** More calls at once than this are refused: a peer cannot make the other side hold unbounded state. */
const MAX_CALLS = 4096

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

  readonly #socket: Duplex
  readonly #calls = new Map<number, Call>()
  readonly #onOpen: ((call: Call, request: unknown) => void) | undefined
  readonly #hello = Promise.withResolvers<unknown>()
  readonly #closed = Promise.withResolvers<void>()
  #pending: Buffer[] = []
  #nextCall = 1
  #failure: Error | undefined

  constructor(socket: Duplex, onOpen?: (call: Call, request: unknown) => void) {
    this.#socket = socket
    this.#onOpen = onOpen
    this.closed = this.#closed.promise
    this.hello = this.#hello.promise
    this.hello.catch(() => {})
    const decode = createDecoder(frame => this.#receive(frame))
    socket.on('data', (bytes: Buffer) => {
      try {
        decode(bytes)
      } catch (error) {
        this.close(new ApiError('sandbox_unavailable', `the sandbox broke the protocol: ${messageOf(error)}`))
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

  /** Starts a call. On a channel that is gone, the call it gives has already failed. */
  open(request: unknown): Call {
    const id = this.#nextCall++
    const call = this.#add(id)
    if (this.#failure) call.fail(this.#failure)
    else this.write(kinds.open, id, json(request))
    return call
  }

  sendHello(value: unknown): void {
    this.write(kinds.hello, 0, json(value))
  }

  /** Frames written in one turn of the event loop leave in one write. Bounded by the lanes' windows. */
  write(kind: Kind, call: number, ...parts: readonly Uint8Array[]): void {
    if (this.#failure) return
    if (this.#pending.length === 0) queueMicrotask(() => this.#flush())
    this.#pending.push(encodeFrame(kind, call, ...parts))
  }

  forget(id: number): void {
    this.#calls.delete(id)
  }

  close(reason: Error = new ApiError('sandbox_unavailable', 'the connection to the sandbox was lost')): void {
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
    const [first] = frames
    if (!first || this.#failure) return
    this.#socket.write(frames.length === 1 ? first : Buffer.concat(frames))
  }

  #add(id: number): Call {
    const call = new Call(id, this)
    this.#calls.set(id, call)
    return call
  }

  #receive(frame: Frame): void {
    if (frame.kind === kinds.hello) this.#hello.resolve(parse(frame.payload))
    else if (frame.kind === kinds.open) this.#opened(frame)
    // A call that has ended here may still have frames on their way.
    else this.#calls.get(frame.call)?.receive(frame)
  }

  #opened(frame: Frame): void {
    if (!this.#onOpen || this.#calls.has(frame.call)) throw new Error('a call that was not expected')
    if (this.#calls.size >= MAX_CALLS) throw new Error('too many calls at once')
    this.#onOpen(this.#add(frame.call), parse(frame.payload))
  }
}
