import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { type EventStep, followEvents } from '../../core/events/events.ts'
import type { Runtime } from '../../core/runtime.ts'
import { ApiError } from '../../errors.ts'
import { eventStreamHeaders, HEARTBEAT, OPEN } from '../../stream/frame.ts'
import { getCaller } from '../caller.ts'
import { getContext } from '../context.ts'
import { Id } from '../schema.ts'

const EventQuery = Type.Object({
  types: Type.Optional(
    Type.String({ maxLength: bounds.name, description: 'Types with commas between them, as run.ended; default: all.' }),
  ),
  sandboxId: Type.Optional(Id),
})

export const eventRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/events' }).get(
    '/',
    ({ request, query: { types, sandboxId } }) => {
      const after = readPosition(request.headers.get('last-event-id'))
      const steps = followEvents(runtime, getCaller(request), {
        ...(types !== undefined && { types: types.split(',').map(type => type.trim()) }),
        ...(sandboxId !== undefined && { sandboxId }),
        ...(after !== undefined && { after }),
      })
      return new Response(
        streamOf(steps, () => getContext(request).admission?.isValid() ?? false),
        {
          headers: eventStreamHeaders,
        },
      )
    },
    { query: EventQuery },
  )

/** Throws invalid_request for a text that is not an event's id. */
function readPosition(header: string | null): number | undefined {
  if (header === null) return undefined
  if (!/^\d{1,15}$/.test(header)) throw new ApiError('invalid_request', 'Last-Event-ID: must be the id of an event')
  return Number(header)
}

const encoder = new TextEncoder()
const encode = (text: string) => encoder.encode(text)

/**
 * Makes the stream, which is read at the client's pace. It ends when the key, token or session has ended; each step checks that.
 */
function streamOf(steps: AsyncGenerator<EventStep>, isAdmitted: () => boolean): ReadableStream<Uint8Array> {
  let isOver = false
  return new ReadableStream<Uint8Array>(
    {
      start: controller => controller.enqueue(OPEN),
      async pull(controller) {
        const { value, done } = await steps.next()
        if (isOver) return
        if (done || !isAdmitted()) controller.close()
        else controller.enqueue(framesOf(value))
      },
      cancel() {
        isOver = true
        void steps.return(undefined).catch(() => {})
      },
    },
    { highWaterMark: 0 },
  )
}

function framesOf(step: EventStep): Uint8Array {
  if (step.kind === 'silence') return HEARTBEAT
  // An id without data sets a browser's Last-Event-ID without giving it an event.
  if (step.kind === 'start') return encode(`id: ${step.at}\n\n`)
  if (step.kind === 'lost') return encode(`id: ${step.at}\ndata: {"type":"events.lost"}\n\n`)
  return encode(
    step.events
      .map(({ id, type, data, createdAt }) => `id: ${id}\ndata: ${JSON.stringify({ type, ...data, createdAt })}\n\n`)
      .join(''),
  )
}
