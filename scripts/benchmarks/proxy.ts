/** Throughput and a warm tunnel's cost through the proxy out of a sandbox, beside the same without it. */
import { call, inDirectory, serve } from './server.ts'
import { line, report } from './table.ts'

const MIB = 1024 * 1024
const DOWNLOAD_MIB = 1024
const CONNECTS = 200
const ROUNDS = 3
const HOST = '127.0.0.2'

/** In a process of its own: it shares no event loop with what is measured. */
const serving = `
const piece = new Uint8Array(${MIB})
const server = Bun.serve({ hostname: '${HOST}', port: 0, fetch(request) {
  if (!request.url.endsWith('/large')) return new Response('ok')
  let left = ${DOWNLOAD_MIB}
  return new Response(new ReadableStream({ pull: each => (left-- > 0 ? each.enqueue(piece) : each.close()) }))
} })
console.log(server.port)
`
const upstream = Bun.spawn([process.execPath, '-e', serving], { stdout: 'pipe' })
const { value: said } = await upstream.stdout.getReader().read()
const port = Number(Buffer.from(said ?? []).toString())

/** Prints MiB a second. */
const download = (option: string) =>
  `curl -sSf ${option} -o /dev/null -w '%{speed_download}' http://${HOST}:${port}/large`

/** Prints the milliseconds of connecting, asking and hearing the first byte, each on a fresh connection. */
const connecting = (tunnel: boolean) => `python3 - <<'END'
import socket, time
for _ in range(${CONNECTS}):
  began = time.perf_counter()
  s = socket.create_connection(${tunnel ? '("127.0.0.1", 3128)' : `("${HOST}", ${port})`})
  s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
  ${tunnel ? `s.sendall(b"CONNECT ${HOST}:${port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"); s.recv(1000)` : 'pass'}
  s.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"); s.recv(1)
  print((time.perf_counter() - began) * 1000)
  s.close()
END`

const direct = line('download, direct', { unit: 'MiB/s' })
const plain = line('download out of a sandbox, plain HTTP', { unit: 'MiB/s', baseline: direct })
const tunnelled = line('download out of a sandbox, tunnel', { unit: 'MiB/s', baseline: direct })
const alone = line('connect to first byte, direct')
const warm = line('connect to first byte, warm tunnel', { baseline: alone })

try {
  await inDirectory(async directory => {
    const { url, stop } = await serve(directory, ['--network-private', HOST])
    const place = { agent: 'echo', networkAllowOut: [`${HOST}/32`] }
    const { id } = JSON.parse(await call(url, 'POST', '/v1/sandboxes', place))
    const inside = async (command: string): Promise<string> => {
      const { stdout, stderr, exitCode } = JSON.parse(await call(url, 'POST', `/v1/sandboxes/${id}/exec`, { command }))
      if (exitCode !== 0) throw new Error(stderr)
      return stdout
    }
    const outside = (command: string) => Bun.spawn(['sh', '-c', command]).stdout.text()
    const speed = (printed: string) => [Number(printed) / MIB]
    const times = (printed: string) => printed.trim().split('\n').map(Number)
    for (let round = 0; round < ROUNDS; round++) {
      direct.rounds.push(speed(await outside(download(''))))
      plain.rounds.push(speed(await inside(download(''))))
      tunnelled.rounds.push(speed(await inside(download('-p'))))
      alone.rounds.push(times(await outside(connecting(false))))
      warm.rounds.push(times(await inside(connecting(true))))
    }
    await call(url, 'DELETE', `/v1/sandboxes/${id}`)
    await stop()
  })
  report([direct, plain, tunnelled, alone, warm])
} finally {
  upstream.kill()
}
