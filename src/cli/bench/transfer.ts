/**
 * One request over its own connection. Its bytes are counted and not kept, so that the client costs the same for every server.
 */
export interface Transfer {
  status: number
  /** The size of the whole answer, with its head. */
  bytes: number
  /** The end of the answer. */
  tail: string
}

export interface TransferOptions {
  method?: string
  headers?: Readonly<Record<string, string>>
  /** The body as text, or the number of bytes to send. */
  body?: string | { bytes: number }
  /** Called with each piece of the answer, including its head. */
  onPiece?: (piece: Uint8Array) => void
}

const PIECE = new Uint8Array(1024 * 1024)
const TAIL = 1000

/** Resolves at the end of the answer. Rejects when the connection fails. */
export function transfer(url: string, options: TransferOptions = {}): Promise<Transfer> {
  const { method = 'GET', headers = {}, body = '', onPiece } = options
  const { hostname, port, host, pathname, search } = new URL(url)
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.bytes
  const lines = Object.entries({ host, connection: 'close', 'content-length': `${length}`, ...headers })
  const head = [`${method} ${pathname}${search} HTTP/1.1`, ...lines.map(([name, value]) => `${name}: ${value}`)]
  const begin = Buffer.from(`${head.join('\r\n')}\r\n\r\n${typeof body === 'string' ? body : ''}`)
  let sent = 0
  let left = typeof body === 'string' ? 0 : body.bytes
  let bytes = 0
  let first = ''
  let tail = Buffer.alloc(0)
  const { promise, resolve, reject } = Promise.withResolvers<Transfer>()
  const send = (socket: { write(data: Uint8Array): number }) => {
    while (sent < begin.byteLength) {
      const taken = socket.write(begin.subarray(sent))
      if (taken <= 0) return
      sent += taken
    }
    while (left > 0) {
      const taken = socket.write(left < PIECE.byteLength ? PIECE.subarray(0, left) : PIECE)
      if (taken <= 0) return
      left -= taken
    }
  }
  const end = () => {
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1])
    if (status) resolve({ status, bytes, tail: tail.toString() })
    else reject(new Error(`${url}: the connection ended without an answer`))
  }
  void Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: send,
      drain: send,
      data(socket, piece) {
        if (bytes === 0) first = piece.toString('latin1', 0, 20)
        bytes += piece.byteLength
        tail = Buffer.from(
          piece.byteLength >= TAIL ? piece.subarray(-TAIL) : Buffer.concat([tail, piece]).subarray(-TAIL),
        )
        onPiece?.(piece)
        // When an upload fails, the answer comes before the body's end.
        if (left > 0 && first.includes(' 4')) socket.end()
      },
      close: end,
      error: (_socket, error) => reject(error),
      connectError: (_socket, error) => reject(error),
    },
  }).catch(reject)
  return promise
}
