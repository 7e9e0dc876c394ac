/** The bare server with which streams are compared. It runs in its own process and ends with its stdin. */

const PIECE = new Uint8Array(1024 * 1024)
const SSE = { 'content-type': 'text/event-stream' }

/** A loopback address that a network rule can name. */
export const PEER_HOST = '127.0.0.2'

/** Serves until stdin ends: `/bytes?count`, `/stream?count`, `/file?path`, and `/events`, which `/send?count&everyMs&bytes` feeds. */
export async function servePeer(): Promise<void> {
  const readers = new Set<ReadableStreamDefaultController<Uint8Array>>()
  let finished = 0
  const streamOf = (count: number) => {
    let left = count
    return new ReadableStream<Uint8Array>({
      pull(stream) {
        if (left > 0) stream.enqueue(left < PIECE.byteLength ? PIECE.subarray(0, left) : PIECE)
        left -= PIECE.byteLength
        if (left > 0) return
        finished += 1
        stream.close()
      },
    })
  }
  const readEvents = () => {
    let reader: ReadableStreamDefaultController<Uint8Array>
    return new ReadableStream<Uint8Array>({
      start(stream) {
        reader = stream
        readers.add(stream)
        stream.enqueue(Buffer.from(': open\n\n'))
      },
      cancel: () => void readers.delete(reader),
    })
  }
  const send = async (count: number, everyMs: number, bytes: number) => {
    const event = new Uint8Array(bytes).fill(120)
    for (let index = 0; index < count; index++) {
      for (const reader of readers) reader.enqueue(event)
      await Bun.sleep(everyMs)
    }
  }
  const bodies = new Map<number, Uint8Array<ArrayBuffer>>()
  const bodyOf = (count: number) => {
    const body = bodies.get(count) ?? new Uint8Array(count).fill(120)
    bodies.set(count, body)
    return body
  }
  const server = Bun.serve({
    hostname: PEER_HOST,
    port: 0,
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      const number = (name: string) => Number(searchParams.get(name))
      switch (pathname) {
        case '/bytes':
          return new Response(bodyOf(number('count')))
        case '/stream':
          return new Response(streamOf(number('count')))
        case '/finished':
          return new Response(`${finished}`)
        case '/file':
          return new Response(Bun.file(searchParams.get('path') ?? ''))
        case '/events':
          return new Response(readEvents(), { headers: SSE })
        case '/send':
          await send(number('count'), number('everyMs'), number('bytes'))
          return new Response()
        case '/end':
          for (const reader of readers) reader.close()
          readers.clear()
          return new Response()
        default:
          return new Response(null, { status: 404 })
      }
    },
  })
  console.log(server.url.origin)
  for await (const _ of Bun.stdin.stream());
  await server.stop(true)
}
