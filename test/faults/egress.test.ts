import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { patiently, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

const HOST = '127.0.0.2'

/** Sends for as long as somebody reads; `/short` is short. */
let origin: ReturnType<typeof Bun.serve>
beforeAll(() => {
  origin = Bun.serve({
    hostname: HOST,
    port: 0,
    fetch: request =>
      request.url.endsWith('/short')
        ? new Response('short')
        : new Response(new ReadableStream({ pull: each => each.enqueue(new Uint8Array(65_536)) })),
  })
})
afterAll(() => origin.stop(true))

/** Without spares its only jail is that of the test. */
const startWithOrigin = () => startServer({ flags: ['--network-private', HOST, '--spares', '0'] })

const sandboxOn = (server: Server) => server.sandbox({ networkAllowOut: [`${HOST}/32`] })

/** The sockets of a process, by their inodes. */
function socketsOf(pid: number): string[] {
  const links = readdirSync(`/proc/${pid}/fd`).map(fd => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return ''
    }
  })
  return links.flatMap(link => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])
}

/** The pid of nsjail of a server's only sandbox. */
function jailOf({ dataDirectory }: Server): number {
  const [environment = ''] = readdirSync(join(dataDirectory, 'sandboxes'))
  return Number.parseInt(readFileSync(join(dataDirectory, 'sandboxes', environment, 'pid'), 'utf8'), 10)
}

/** The TCP sockets in the network of a server's only sandbox, whichever process has them. */
function socketsInside(server: Server): Set<string> {
  const nsjail = jailOf(server)
  const guest = readFileSync(`/proc/${nsjail}/task/${nsjail}/children`, 'utf8').trim()
  const lines = readFileSync(`/proc/${guest}/net/tcp`, 'utf8').trim().split('\n').slice(1)
  return new Set(lines.map(line => line.trim().split(/\s+/)[9] ?? ''))
}

/** Runs until the second server answers; writes what it saw. A program that hears nothing for long says `timed out`. */
const program = (port: number) => `
import socket, time
seen = []
def say(path):
  s = socket.create_connection(("127.0.0.1", 3128), timeout=20)
  s.sendall(b"CONNECT ${HOST}:${port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
  if not s.recv(1000).startswith(b"HTTP/1.1 200"): raise OSError("closed")
  s.sendall(b"GET " + path + b" HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
  return s
s = say(b"/long")
s.recv(100000)
open("/tmp/reading", "w").write("yes")
try:
  while s.recv(1000000): pass
  seen.append("ended")
except ConnectionError: seen.append("ended")
except OSError as error: seen.append(str(error))
while True:
  try:
    s = say(b"/short")
    if s.makefile().read().endswith("short"): break
  except ConnectionRefusedError: seen.append("refused")
  except OSError as error: seen.append("timed out" if "timed" in str(error) else "closed")
  time.sleep(0.01)
open("/tmp/seen", "w").write(" ".join(dict.fromkeys(seen)) + " answered")
`

test('a download ends with the server that is killed, and the next server is reached; between them nothing hangs', async () => {
  await using server = await startWithOrigin()
  const id = await sandboxOn(server)
  const encoded = Buffer.from(program(Number(origin.port))).toString('base64')
  await server.exec(id, `echo ${encoded} | base64 -d >/tmp/program.py; nohup python3 /tmp/program.py >/tmp/log 2>&1 &`)
  const shows = async (path: string) => (await server.exec(id, `cat ${path} 2>/dev/null`)).stdout
  await until(async () => (await shows('/tmp/reading')) === 'yes')
  await server.kill()
  await server.start()
  await until(async () => (await shows('/tmp/seen')) !== '')
  const seen = (await shows('/tmp/seen')).split(' ')
  expect(seen[0]).toBe('ended')
  expect(seen.at(-1)).toBe('answered')
  expect(seen.filter(each => !['ended', 'refused', 'closed', 'answered'].includes(each))).toEqual([])
})

test.each(['killed', 'deleted'])('a sandbox that is %s leaves no socket in the server', async how => {
  await using server = await startWithOrigin()
  const id = await sandboxOn(server)
  const download = `curl -sS -o /dev/null http://${HOST}:${origin.port}/long`
  await server.exec(id, `for option in -p -p ""; do nohup ${download} $option >/tmp/log 2>&1 & done`)
  await until(() => origin.pendingRequests === 3)
  const inside = socketsInside(server)
  const held = () => new Set(socketsOf(server.pid).filter(socket => inside.has(socket))).size
  // It listens at two ports there, and serves three.
  expect(held()).toBe(5)
  if (how === 'killed') process.kill(jailOf(server), 'SIGKILL')
  else expect((await server.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
  await until(() => held() === 0)
  await until(() => origin.pendingRequests === 0)
})
