import { networkInterfaces } from 'node:os'

/** The bare server with which streams are compared. It runs in its own process and ends with its stdin. */

const PIECE = new Uint8Array(1024 * 1024)
const SSE = { 'content-type': 'text/event-stream' }

/** A loopback address that a network rule can name. */
export const PEER_HOST = '127.0.0.2'

/** Serves until stdin ends, and prints its origins: `/bytes?count`, `/stream?count`, `/file?path`, and `/events`, which `/send?count&everyMs&bytes` feeds. */
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
  const outer = serveOuter(streamOf)
  console.log([server.url.origin, ...(outer?.origins ?? [])].join(' '))
  for await (const _ of Bun.stdin.stream());
  await Promise.all([server.stop(true), outer?.stop()])
}

/**
 * Serves `/stream?count` at an address of this machine that is not of its loopback, and at another port a byte that comes
 * without a request. Both are for this machine alone, and files are for neither. Undefined when there is no such address.
 */
function serveOuter(streamOf: (count: number) => ReadableStream<Uint8Array>) {
  const hostname = Object.values(networkInterfaces())
    .flatMap(each => each ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address
  if (hostname === undefined) return undefined
  // A connection of this machine to one of its addresses comes from that address.
  const isOwn = (address: string | undefined) => address === hostname
  const greeter = Bun.listen({
    hostname,
    port: 0,
    socket: {
      open(socket) {
        if (isOwn(socket.remoteAddress)) socket.write('\n')
        socket.end()
      },
      data() {},
    },
  })
  const streams = Bun.serve({
    hostname,
    port: 0,
    idleTimeout: 0,
    development: false,
    fetch(request, server) {
      if (!isOwn(server.requestIP(request)?.address)) return new Response(null, { status: 403 })
      const { pathname, searchParams } = new URL(request.url)
      if (pathname !== '/stream') return new Response(null, { status: 404 })
      return new Response(streamOf(Number(searchParams.get('count'))))
    },
  })
  return {
    origins: [streams.url.origin, `tcp://${hostname}:${greeter.port}`],
    async stop() {
      greeter.stop(true)
      await streams.stop(true)
    },
  }
}
