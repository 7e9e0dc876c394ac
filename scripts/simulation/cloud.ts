/**
 * An E2B in which sandboxes cost nothing: a control plane, and a daemon in which every command succeeds. It answers as late as a distant
 * one. It prints its address, and ends with its stdin.
 */
export {}

const CREATE_MS = 150
const CONTROL_MS = 20
const COMMAND_MS = 30

const sandboxes = new Map<string, { metadata: Record<string, string>; templateID: string }>()
const refusal = (code: number, message: string) => Response.json({ code, message }, { status: code })

async function control(method: string, path: string, body: string): Promise<Response> {
  const [, id = ''] = /^(?:\/v2)?\/sandboxes\/([^/]+)/.exec(path) ?? []
  await Bun.sleep(method === 'POST' && id === '' ? CREATE_MS : CONTROL_MS)
  if (id === '' && method === 'GET') return Response.json([])
  if (id === '') {
    const { metadata = {}, templateID } = JSON.parse(body)
    const made = `i${crypto.randomUUID().replaceAll('-', '')}`
    sandboxes.set(made, { metadata, templateID })
    return Response.json(accessTo(made, templateID), { status: 201 })
  }
  const found = sandboxes.get(id)
  if (!found) return refusal(404, `Sandbox "${id}" doesn't exist or you don't have access to it`)
  if (path.endsWith('/connect')) return Response.json(accessTo(id, found.templateID))
  if (method === 'DELETE') sandboxes.delete(id)
  if (method !== 'GET') return new Response(null, { status: 204 })
  if (path.endsWith('/metrics')) return Response.json([])
  const now = new Date().toISOString()
  const size = { cpuCount: 2, memoryMB: 512, diskSizeMB: 1024 }
  return Response.json({
    ...accessTo(id, found.templateID),
    ...found,
    ...size,
    startedAt: now,
    endAt: now,
    state: 'running',
  })
}

const accessTo = (sandboxID: string, templateID: string) => ({
  ...{ sandboxID, templateID, clientID: 'simulated', envdVersion: '0.5.9' },
  ...{ envdAccessToken: 'simulated', trafficAccessToken: 'simulated' },
})

/** A frame of Connect RPC: a flag byte, a length in big-endian order, JSON. */
function frame(flag: number, message: object): Uint8Array {
  const json = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(5)
  head.writeUInt8(flag, 0)
  head.writeUInt32BE(json.byteLength, 1)
  return Buffer.concat([head, json])
}

/** The daemon's messages about a command's start and end. */
async function* run(request: Buffer): AsyncGenerator<Uint8Array> {
  const { args = [] } = JSON.parse(request.toString('utf8', 5)).process
  const data = (name: string, report: string) =>
    frame(0, { event: { data: { [name]: Buffer.from(`\x01tb:${args[3]}:${report}\x02`).toString('base64') } } })
  yield frame(0, { event: { start: { pid: 7 } } })
  const isCommand = args[2] === 'threadbox-call'
  if (isCommand) yield data('stdout', 'pid 8')
  await Bun.sleep(COMMAND_MS)
  if (isCommand) {
    yield data('stdout', 'end 0')
    yield data('stderr', 'end')
  }
  yield frame(0, { event: { end: { exitCode: 0, exited: true, status: 'exit 0' } } })
  yield frame(2, {})
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url)
    if (request.headers.has('x-api-key')) return await control(request.method, pathname, await request.text())
    if (!pathname.endsWith('/Start')) return Response.json({})
    const asked = Buffer.from(await request.arrayBuffer())
    return new Response(run(asked), { headers: { 'content-type': 'application/connect+json' } })
  },
})
console.log(server.url.origin)
for await (const _ of Bun.stdin.stream());
await server.stop(true)
