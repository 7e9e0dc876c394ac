import { Duplex } from 'node:stream'

const HEADER_BYTES = 8
const STDOUT = 1
const STDERR = 2

/** How much of stderr's end is kept, to say why a stream has ended. */
const MAX_ERROR_BYTES = 4096

export interface ProcessStream extends Duplex {
  /** The end of the process's stderr. */
  readonly stderr: string
}

/**
 * Joins a process's stdin and stdout into one stream. The engine's connection carries stdout and stderr in frames: u8 stream,
 * three zeros, u32be length, bytes. `head` holds the bytes that came with the answer's headers.
 */
export function demultiplex(socket: Duplex, head: Buffer): ProcessStream {
  let header: Buffer = Buffer.alloc(0)
  let left = 0
  let stream = STDOUT
  let stderr: Buffer = Buffer.alloc(0)

  const take = (bytes: Buffer) => {
    for (let rest = bytes; rest.byteLength > 0; ) {
      if (left === 0) {
        const wanted = HEADER_BYTES - header.byteLength
        header = header.byteLength > 0 ? Buffer.concat([header, rest.subarray(0, wanted)]) : rest.subarray(0, wanted)
        rest = rest.subarray(wanted)
        if (header.byteLength < HEADER_BYTES) return
        stream = header.readUInt8(0)
        left = header.readUInt32BE(4)
        header = Buffer.alloc(0)
        if (stream !== STDOUT && stream !== STDERR) throw new Error('a frame of an unknown stream')
        continue
      }
      const part = rest.subarray(0, left)
      rest = rest.subarray(part.byteLength)
      left -= part.byteLength
      if (stream === STDERR) stderr = Buffer.concat([stderr, part]).subarray(-MAX_ERROR_BYTES)
      else if (!duplex.push(part)) socket.pause()
    }
  }

  const duplex = new Duplex({
    read: () => void socket.resume(),
    write: (chunk: Buffer, _encoding, done) => {
      if (socket.write(chunk)) done()
      else socket.once('drain', done)
    },
    final(done) {
      socket.end()
      done()
    },
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  const receive = (bytes: Buffer) => {
    try {
      take(bytes)
    } catch (error) {
      duplex.destroy(error as Error)
    }
  }
  socket.on('data', receive)
  socket.on('end', () => duplex.push(null))
  socket.on('error', error => duplex.destroy(error))
  socket.on('close', () => duplex.destroy())
  receive(head)
  return Object.defineProperty(duplex, 'stderr', { get: () => stderr.toString('utf8').trim() }) as ProcessStream
}
