import { Duplex } from 'node:stream'
import { ApiError } from '../../src/errors.ts'
import type { Envd } from './envd.ts'
import { startMarkedCommand } from './marked-command.ts'
import { RELAY } from './scripts.ts'
import { createInput, type MarkedCommands } from './spawn.ts'

/** Connects to a port inside, over the stdin and stdout of a relay that dials it there. */
export async function connectInside(
  envd: Envd,
  port: number,
  server: string,
  running: MarkedCommands,
): Promise<Duplex> {
  const marked = await startMarkedCommand(envd, {
    command: mark => ['perl', '-e', RELAY, 'threadbox-relay', String(mark), server, String(port)],
  })
  if (marked.report !== 'open') {
    marked.fail(new Error('refused'))
    void envd.closeInput(marked.pid).catch(() => {})
    throw new ApiError('port_unreachable', `Nothing listens on port ${port}.`)
  }
  running.add(marked)
  void marked.stderr.cancel()
  const reader = marked.stdout.getReader()
  const writer = createInput(envd, marked, 'stdin').getWriter()
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
      running.delete(marked)
      marked.fail(error ?? new Error('closed'))
      const kill = () => envd.signal(marked.pid, 'SIGKILL').catch(() => {})
      void envd.closeInput(marked.pid).then(kill, kill)
      done(error)
    },
  })
  return duplex
}
