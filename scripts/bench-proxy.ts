/** Throughput and a warm tunnel's cost through the proxy out of a sandbox, beside the same without it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNsjailBackend } from 'nsjail-wrapper'
import { createEgress } from '../src/egress/egress.ts'
import { parseRules } from '../src/egress/rules.ts'
import { runShell } from '../src/guest/shell.ts'

const MIB = 1024 * 1024
const DOWNLOAD_MIB = 1024
const CONNECTS = 200
const HOST = '127.0.0.2'

const root = join(import.meta.dir, '..')
const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-bench-'))
/** In a process of its own: it shares no event loop with the proxy. */
const serving = `
const piece = new Uint8Array(${MIB})
const server = Bun.serve({ hostname: '${HOST}', port: 0, fetch(request) {
  if (!request.url.endsWith('/large')) return new Response('ok')
  let left = ${DOWNLOAD_MIB}
  return new Response(new ReadableStream({ pull: each => (left-- > 0 ? each.enqueue(piece) : each.close()) }))
} })
console.log(server.port)
`
const server = Bun.spawn([process.execPath, '-e', serving], { stdout: 'pipe' })
const { value: said } = await server.stdout.getReader().read()
const port = Number(Buffer.from(said ?? []).toString())
const rules = parseRules([HOST])
const egress = createEgress({
  policyOf: () => ({ mode: 'public', ceiling: rules, layers: [{ allow: rules, deny: [] }] }),
  log: () => {},
})
const backend = createNsjailBackend({
  dataDirectory,
  executable: join(root, 'dist/threadbox'),
  nsjailPath: join(root, '.cache/nsjail/bin/nsjail'),
  serveProxy: egress.serve,
  log: line => console.error(line),
})

const origin = `http://${HOST}:${port}`
const curl = (options: string) =>
  `curl -sSf ${options} -o /dev/null -w '%{speed_download} %{time_connect} %{time_pretransfer}\\n'`

/** MiB a second of one download. */
const speedOf = (output: string) => Number(output.split(' ')[0]) / MIB

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** Milliseconds of connecting, asking and hearing the first byte, on a loop of fresh connections. */
const script = (tunnel: boolean) => `
import socket, time
times = []
for _ in range(${CONNECTS}):
  began = time.perf_counter()
  s = socket.create_connection(${tunnel ? '("127.0.0.1", 3128)' : `("${HOST}", ${port})`})
  s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
  ${tunnel ? `s.sendall(b"CONNECT ${HOST}:${port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"); s.recv(1000)` : 'pass'}
  s.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"); s.recv(1)
  times.append((time.perf_counter() - began) * 1000)
  s.close()
times.sort(); print(times[len(times) // 2])
`

try {
  const environment = await backend.create({ id: `env_bench${process.pid}`, limits: {} })
  const inside = async (command: string | string[]) => (await runShell(environment, { command })).stdout
  const outside = (command: string[]) => new Response(Bun.spawn(command).stdout).text()
  const direct: number[] = []
  const plain: number[] = []
  const tunnelled: number[] = []
  for (let round = 0; round < 3; round++) {
    direct.push(speedOf(await outside(['sh', '-c', `${curl('')} ${origin}/large`])))
    plain.push(speedOf(await inside(`${curl('')} ${origin}/large`)))
    tunnelled.push(speedOf(await inside(`${curl('-p')} ${origin}/large`)))
  }
  const ratio = (values: readonly number[]) =>
    `${median(values).toFixed(0)} MiB/s, ${(median(values) / median(direct)).toFixed(2)} of direct`
  console.log(`download, direct:         ${median(direct).toFixed(0)} MiB/s`)
  console.log(`download, plain HTTP:     ${ratio(plain)}`)
  console.log(`download, tunnel:         ${ratio(tunnelled)}`)
  const alone = Number(await outside(['python3', '-c', script(false)]))
  const warm = Number(await inside(['python3', '-c', script(true)]))
  console.log(
    `connect and first byte:   direct ${alone.toFixed(2)} ms, tunnel ${warm.toFixed(2)} ms, ${(warm / alone).toFixed(1)} times`,
  )
  await environment.destroy()
} finally {
  egress.close()
  await backend.close()
  server.kill()
  rmSync(dataDirectory, { recursive: true, force: true })
}
