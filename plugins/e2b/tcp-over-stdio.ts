import { Duplex } from 'node:stream'
import { ApiError } from '../../src/errors.ts'
import type { Envd } from './envd.ts'
import { startCall } from './marked-command.ts'
import { RELAY } from './scripts.ts'
import { type Calls, inputOf } from './spawn.ts'

/** A connection to a port inside, over the input and output of a process that dials it there. */
export async function connectInside(envd: Envd, port: number, server: string, calls: Calls): Promise<Duplex> {
  const call = await startCall(envd, {
    command: mark => ['perl', '-e', RELAY, 'threadbox-relay', String(mark), server, String(port)],
  })
  if (call.said !== 'open') {
    call.fail(new Error('refused'))
    void envd.closeInput(call.pid).catch(() => {})
    throw new ApiError('port_unreachable', `Nothing listens on port ${port}.`)
  }
  calls.add(call)
  void call.stderr.cancel()
  const reader = call.stdout.getReader()
  const writer = inputOf(envd, call, 'stdin').getWriter()
  const duplex = new Duplex({
    read() {
      reader.read().then(
        ({ value }) => this.push(value ?? null),
        error => this.destroy(error),
      )
    },
    write(chunk: Buffer, _encoding, done) {
      writer.write(chunk).then(() => done(), done)
    },
    final(done) {
      writer.close().then(() => done(), done)
    },
    destroy(error, done) {
      calls.delete(call)
      call.fail(error ?? new Error('closed'))
      const kill = () => envd.signal(call.pid, 'SIGKILL').catch(() => {})
      void envd.closeInput(call.pid).then(kill, kill)
      done(error)
    },
  })
  return duplex
}
