import { Duplex } from 'node:stream'
import { type Call, lanes } from './call.ts'

/** A call's up and down lanes as one stream of the side that opened it or of the other, with the back-pressure of both. */
export function duplexOf(call: Call, side: 'opener' | 'answerer' = 'opener'): Duplex {
  const [incoming, outgoing] = side === 'opener' ? [lanes.down, lanes.up] : [lanes.up, lanes.down]
  const duplex = new Duplex({
    read() {
      call.read(incoming).then(
        chunk => this.push(chunk ?? null),
        error => this.destroy(error),
      )
    },
    write(chunk: Buffer, _encoding, done) {
      call.send(outgoing, chunk).then(() => done(), done)
    },
    final(done) {
      call.end(outgoing)
      done()
    },
    destroy(error, done) {
      call.close()
      done(error)
    },
  })
  // The opener closes a call when nothing more can come or go.
  if (side === 'answerer') void call.result.catch(() => {}).finally(() => duplex.destroy())
  return duplex
}
