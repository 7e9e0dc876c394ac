import type { OutputEvent } from '../../core/sandboxes/processes.ts'
import type { OutputStream } from '../../plugin-api/index.ts'
import { DONE, eventStreamHeaders, HEARTBEAT, OPEN } from '../../stream/frame.ts'
import { errorEvent } from '../failure.ts'

const HEARTBEAT_MS = 15_000

const encoder = new TextEncoder()

/**
 * A process's output as server-sent events, read at the client's pace. `abort` is aborted when the client goes away; `use`
 * is disposed of at the end.
 */
export function outputResponse(
  events: AsyncGenerator<OutputEvent, void>,
  encoding: 'text' | 'base64',
  abort: AbortController,
  use: Disposable,
): Response {
  const frames = toFrames(events, encoding)
  let coming: Promise<IteratorResult<Uint8Array, void>> | undefined
  const body = new ReadableStream<Uint8Array>(
    {
      start: controller => controller.enqueue(OPEN),
      async pull(controller) {
        coming ??= frames.next()
        const timer = Promise.withResolvers<undefined>()
        const silence = setTimeout(timer.resolve, HEARTBEAT_MS)
        const next = await Promise.race([coming, timer.promise])
        clearTimeout(silence)
        if (abort.signal.aborted) return
        if (!next) return controller.enqueue(HEARTBEAT)
        coming = undefined
        controller.enqueue(next.value ?? DONE)
        if (!next.done) return
        use[Symbol.dispose]()
        controller.close()
      },
      cancel() {
        use[Symbol.dispose]()
        abort.abort()
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers: eventStreamHeaders })
}

/** Never throws: an error is the last event. */
async function* toFrames(
  events: AsyncGenerator<OutputEvent, void>,
  encoding: 'text' | 'base64',
): AsyncGenerator<Uint8Array, void> {
  const text = createTexts()
  try {
    for await (const event of events) {
      if (event.type === 'gap') yield frame(event, event.offset)
      else if (event.type === 'exit') {
        for (const each of text.rest()) yield frame(each)
        yield frame(event)
      } else {
        const { type, offset, bytes } = event
        const end = offset + bytes.byteLength
        if (encoding === 'base64') yield frame({ type, offset, data: Buffer.from(bytes).toString('base64') }, end)
        else {
          const whole = text.add(type, offset, bytes)
          if (whole) yield frame(whole, text.resumeAt(end))
        }
      }
    }
    for (const each of text.rest()) yield frame(each)
  } catch (error) {
    yield frame(errorEvent(error, 'The output could not be read further.'))
  }
}

/** `id` is the offset from which a reader continues. */
const frame = (event: object, id?: number): Uint8Array =>
  encoder.encode(`${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`)

interface Text {
  type: OutputStream
  offset: number
  data: string
}

/** Decodes each stream's bytes. A character that has not come whole is held back. */
function createTexts() {
  const held: Partial<Record<OutputStream, { offset: number; bytes: Buffer }>> = {}
  return {
    add(type: OutputStream, at: number, added: Uint8Array): Text | undefined {
      const { offset, bytes } = held[type] ?? { offset: at, bytes: Buffer.alloc(0) }
      const all = Buffer.concat([bytes, added])
      const whole = all.byteLength - cutBytes(all)
      delete held[type]
      if (whole < all.byteLength) {
        held[type] = { offset: at + added.byteLength - (all.byteLength - whole), bytes: all.subarray(whole) }
      }
      return whole > 0 ? { type, offset, data: all.toString('utf8', 0, whole) } : undefined
    },
    /** The offset from which a later reader gets the bytes that are held back, too. */
    resumeAt: (end: number): number => Math.min(end, held.stdout?.offset ?? end, held.stderr?.offset ?? end),
    /** The bytes that are still held back, as text. They are given once. */
    rest: (): Text[] =>
      (['stdout', 'stderr'] as const).flatMap(type => {
        const { offset = 0, bytes } = held[type] ?? {}
        delete held[type]
        return bytes ? [{ type, offset, data: bytes.toString('utf8') }] : []
      }),
  }
}

/** How many bytes at the end begin a UTF-8 character without its end. */
function cutBytes(bytes: Buffer): number {
  for (let back = 1; back <= 3; back++) {
    const byte = bytes.at(-back)
    if (byte === undefined || byte < 0x80) return 0
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
  }
  return 0
}
