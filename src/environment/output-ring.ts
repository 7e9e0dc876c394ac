import type { OutputStream } from '../plugin-api/index.ts'

/** What is kept of one process's output. */
export const RING_BYTES = 1024 * 1024
/** Turns from one stream to the other that are kept: a process may change at every byte. */
const MAX_RUNS = 4096
const FIRST_BYTES = 16 * 1024

/** Bytes of one stream, from `offset` to the next run's. */
interface Run {
  stream: OutputStream
  offset: number
}

/** The last bytes of a process's output, both streams in the order in which they came. Grows as it is filled. */
export class OutputRing {
  #bytes = Buffer.alloc(0)
  #runs: Run[] = []
  #start = 0
  #end = 0

  constructor(private readonly maxBytes = RING_BYTES) {}

  /** The offset of the oldest byte that is kept. */
  get start(): number {
    return this.#start
  }

  /** How many bytes there ever were. */
  get end(): number {
    return this.#end
  }

  append(stream: OutputStream, bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return
    if (this.#runs.at(-1)?.stream !== stream) this.#runs.push({ stream, offset: this.#end })
    this.#grow(this.#end + bytes.byteLength)
    const kept = bytes.subarray(Math.max(0, bytes.byteLength - this.maxBytes))
    this.#end += bytes.byteLength
    this.#put(this.#end - kept.byteLength, kept)
    this.#start = Math.max(this.#start, this.#end - this.maxBytes)
    this.#dropRuns()
  }

  /** What is kept from an offset on, `maxBytes` at most. */
  read(from: number, maxBytes: number): { offset: number; pieces: { stream: OutputStream; bytes: Buffer }[] } {
    const offset = Math.min(Math.max(from, this.#start), this.#end)
    const until = Math.min(this.#end, offset + maxBytes)
    const first = Math.max(
      0,
      this.#runs.findLastIndex(run => run.offset <= offset),
    )
    const pieces = []
    for (let index = first, at = offset; at < until; index++) {
      const to = Math.min(until, this.#runs[index + 1]?.offset ?? until)
      pieces.push({ stream: this.#runs[index]?.stream ?? 'stdout', bytes: this.#copy(at, to) })
      at = to
    }
    return { offset, pieces }
  }

  /** Doubles up to the bound. Until it is full, nothing has gone round: a longer buffer has every byte at its offset. */
  #grow(wanted: number): void {
    if (this.#bytes.byteLength >= Math.min(wanted, this.maxBytes)) return
    let size = Math.max(FIRST_BYTES, this.#bytes.byteLength)
    while (size < wanted) size *= 2
    const grown = Buffer.alloc(Math.min(size, this.maxBytes))
    grown.set(this.#bytes)
    this.#bytes = grown
  }

  #put(offset: number, bytes: Uint8Array): void {
    const at = offset % this.#bytes.byteLength
    const room = this.#bytes.byteLength - at
    this.#bytes.set(bytes.subarray(0, room), at)
    this.#bytes.set(bytes.subarray(room), 0)
  }

  #copy(from: number, to: number): Buffer {
    const at = from % this.#bytes.byteLength
    const bytes = this.#bytes.subarray(at, at + to - from)
    return Buffer.concat([bytes, this.#bytes.subarray(0, to - from - bytes.byteLength)])
  }

  #dropRuns(): void {
    for (let next = this.#runs[1]; next; next = this.#runs[1]) {
      if (next.offset > this.#start && this.#runs.length <= MAX_RUNS) return
      this.#start = Math.max(this.#start, next.offset)
      this.#runs.shift()
    }
  }
}
