import type { ModelAccess } from '../../src/plugin-api/index.ts'
import { CutOff, type ModelRequest, type ModelTurn, type Wire, type WireEvent } from './model-turns.ts'
import { anthropicError, anthropicEvents, anthropicJson, readAnthropic } from './wire-anthropic.ts'
import { geminiError, geminiEvents, geminiJson, geminiPath, readGemini } from './wire-gemini.ts'
import { chatEvents, chatJson, openaiError, readChat } from './wire-openai-chat.ts'
import { readResponses, responsesEvents, responsesJson } from './wire-openai-responses.ts'

export type { ModelCall, ModelRequest, ModelTurn, Wire } from './model-turns.ts'

type Script = ModelTurn | ((request: ModelRequest) => ModelTurn | Promise<ModelTurn>)

/** A server that speaks the providers' wires and says what a test tells it to. */
export interface ModelServer {
  /** What the next requests get, one each; when there is no more, a short text. */
  play(...turns: Script[]): void
  /** All requests, the oldest first. */
  requests: ModelRequest[]
  /** Requests whose answer has not ended, nor its client gone. */
  readonly openCalls: number
  access(wire: Wire, more?: Partial<ModelAccess>): ModelAccess
  stop(): Promise<void>
}

const wires = {
  '/v1/messages': { read: readAnthropic, events: anthropicEvents, json: anthropicJson, error: anthropicError },
  '/v1/chat/completions': { read: readChat, events: chatEvents, json: chatJson, error: openaiError },
  '/v1/responses': { read: readResponses, events: responsesEvents, json: responsesJson, error: openaiError },
}
const gemini = { read: readGemini, events: geminiEvents, json: geminiJson, error: geminiError }
const isPath = (path: string): path is keyof typeof wires => path in wires
const wireOf = (path: string) => (isPath(path) ? wires[path] : geminiPath.test(path) ? gemini : undefined)

export const allWires: readonly Wire[] = ['anthropic', 'openai-responses', 'openai-chat']

export function startModelServer(): ModelServer {
  let script: Script[] = []
  let openCalls = 0
  const requests: ModelRequest[] = []

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(http) {
      const { pathname } = new URL(http.url)
      const wire = wireOf(pathname)
      if (!wire) return Response.json({ error: { message: `no ${pathname}` } }, { status: 404 })
      const body: any = await http.json()
      const request = wire.read(http.headers, body)
      requests.push(request)
      openCalls += 1
      let isOpen = true
      const close = () => {
        if (isOpen) openCalls -= 1
        isOpen = false
      }
      http.signal.addEventListener('abort', close)
      const next = script.shift() ?? { text: 'Hello from the fake model.' }
      const turn = typeof next === 'function' ? await next(request) : next
      if ('silent' in turn) return new Promise<Response>(() => {})
      if ('status' in turn) {
        close()
        const { status, message = `fake ${status}`, headers = {} } = turn
        return Response.json(wire.error(status, message), { status, headers })
      }
      if (body.stream || pathname.endsWith(':streamGenerateContent')) {
        const endsAfter = 'endsAfter' in turn ? turn.endsAfter : undefined
        return streamOf(wire.events(request, turn), close, endsAfter)
      }
      close()
      return Response.json(wire.json(body, 'text' in turn ? (turn.text ?? '') : ''))
    },
  })

  return {
    play(...turns) {
      script = turns
    },
    requests,
    get openCalls() {
      return openCalls
    },
    access: (wire, more = {}) => ({
      ...{ provider: 'fake', wire, id: 'fake-model', token: 'run-token', programToken: 'run-token', fetch },
      ...{ baseUrl: `http://127.0.0.1:${server.port}/v1`, insideBaseUrl: 'http://127.0.0.1:1/v1' },
      ...more,
    }),
    stop: () => server.stop(true),
  }
}

/** How many events a turn's stream has on a wire. */
export async function countEvents(wire: Wire, turn: ModelTurn): Promise<number> {
  const path = { anthropic: '/v1/messages', 'openai-chat': '/v1/chat/completions', 'openai-responses': '/v1/responses' }
  let count = 0
  const request = {
    ...{ wire, headers: new Headers(), lastText: '', results: [], tools: [] },
    body: { model: 'm', stream_options: { include_usage: true } },
  }
  for await (const _ of wires[path[wire] as keyof typeof wires].events(request, turn)) count += 1
  return count
}

function streamOf(
  events: AsyncGenerator<WireEvent>,
  onEnd: () => void,
  endsAfter = Number.POSITIVE_INFINITY,
): Response {
  const lines = ({ event, data }: WireEvent) =>
    `${event ? `event: ${event}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
  let isCancelled = false
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      try {
        for await (const event of events) {
          if (isCancelled) return
          const bytes = Buffer.from(lines(event))
          const share = Math.min(endsAfter - sent, 1)
          if (share > 0) controller.enqueue(bytes.subarray(0, Math.floor(bytes.byteLength * share)))
          if (share < 1) break
          sent += 1
          // The next piece is another packet.
          await new Promise(setImmediate)
        }
        controller.close()
        onEnd()
      } catch (error) {
        if (!(error instanceof CutOff)) throw error
        if (error.isClean) controller.close()
        else controller.error(error)
        onEnd()
      }
    },
    cancel() {
      isCancelled = true
      onEnd()
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}
