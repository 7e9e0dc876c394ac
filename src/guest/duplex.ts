import { Duplex } from 'node:stream'
import { type Call, lanes } from './call.ts'

/** A call's up and down lanes as one stream, with the back-pressure of both. */
export function duplexOf(call: Call): Duplex {
  return new Duplex({
    read() {
      call.read(lanes.down).then(
        chunk => this.push(chunk ?? null),
        error => this.destroy(error),
      )
    },
    write(chunk: Buffer, _encoding, done) {
      call.send(lanes.up, chunk).then(() => done(), done)
    },
    final(done) {
      call.end(lanes.up)
      done()
    },
    destroy(error, done) {
      call.close()
      done(error)
    },
  })
}
