/**
 * `bun scripts/proofs/connections.ts [PROGRAMS]`: so many programs of one sandbox open connections as fast as they can, and close them, while a
 * program of another one makes a connection now and then. Prints how long that takes it, alone and beside them. It needs python3 and an address of this
 * machine beside its loopback.
 */
import { networkInterfaces } from 'node:os'
import { startServer } from '../../test/support/server.ts'

const PROGRAMS = Number(process.argv[2] ?? 8)
const [address] = Object.values(networkInterfaces()).flatMap(each =>
  (each ?? []).flatMap(({ family, internal, address }) => (family === 'IPv4' && !internal ? [address] : [])),
)
if (address === undefined) throw new Error('this machine has no address but its loopback')

/** Answers each connection with one byte and ends it; in a process of its own, so that this one measures nothing of it. */
const serving = `
import socketserver
class Answer(socketserver.BaseRequestHandler):
  def handle(self): self.request.sendall(b"x")
class Server(socketserver.TCPServer):
  request_queue_size = 1024
server = Server(("${address}", 0), Answer)
print(server.server_address[1], flush=True)
server.serve_forever()
`
const origin = Bun.spawn(['python3', '-c', serving], { stdio: ['ignore', 'pipe', 'inherit'] })
const port = Number(new TextDecoder().decode((await origin.stdout.getReader().read()).value))

const connecting = `
import socket, time
def once():
  from_ = time.monotonic()
  try:
    with socket.create_connection(("${address}", ${port}), 60) as s: s.recv(1)
  except OSError: pass
  return time.monotonic() - from_
`
const flooding = `${connecting}
end = time.monotonic() + 12
count = 0
while time.monotonic() < end: once(); count += 1
print(count)
`
const measuring = `${connecting}
times = []
for _ in range(200): times.append(once()); time.sleep(0.02)
times.sort()
print("p50 %.1f ms, p99 %.1f ms" % (times[100] * 1000, times[198] * 1000))
`

try {
  await using server = await startServer({ flags: ['--network-private', `${address}/32`, '--spares', '0'] })
  const open = () => server.sandbox({ networkAllowOut: [`${address}/32`] })
  const [flooder, other] = [await open(), await open()]
  const python = async (id: string, program: string, copies = 1) => {
    const { stdout, stderr } = await server.exec(
      id,
      `cat >p.py <<'END'\n${program}\nEND\nfor i in $(seq ${copies}); do python3 p.py & done; wait`,
    )
    return stdout.trim() || stderr
  }
  console.log(`alone: ${await python(other, measuring)}`)
  const flood = python(flooder, flooding, PROGRAMS)
  console.log(`beside ${PROGRAMS} programs that flood: ${await python(other, measuring)}`)
  const counts = (await flood).split('\n').map(Number)
  console.log(`connections of the flood: ${(counts.reduce((sum, count) => sum + count, 0) / 12).toFixed(0)} a second`)
} finally {
  origin.kill()
}
