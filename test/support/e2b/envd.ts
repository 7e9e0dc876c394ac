import { connect, createServer } from 'node:net'
import { createFiles } from './envd-files.ts'
import { createInterpreter } from './envd-interpreter.ts'
import { createProcesses, RpcError } from './envd-processes.ts'

/**
 * The daemon inside a fake sandbox: E2B's envd as its clients see it, that is Connect RPC with JSON, /files, and on its own
 * port the code interpreter. It runs in the sandbox's jail, by the executable that is the guest there, and does what it
 * is asked to for real. Facts of the wire: e2b 2.51.0 and the sources of envd.
 */
const token = process.env.ENVD_TOKEN ?? ''
// It is nobody's inheritance: envd gives a command its PATH and little else.
const PATH = process.env.PATH ?? ''

const processes = createProcesses({ PATH, ...JSON.parse(process.env.ENVD_DEFAULTS ?? '{}') })
const files = createFiles()

async function unary(service: string, method: string, request: Request): Promise<Response> {
  try {
    const body = await request.json()
    const answer = service === 'process.Process' ? await processes.unary(method, body) : await files.unary(method, body)
    return Response.json(answer)
  } catch (error) {
    const { code, status, message } = RpcError.of(error)
    return Response.json({ code, message }, { status })
  }
}

/** Without a user of this sandbox nothing is done: only root is here. */
const isUser = (request: Request): boolean =>
  request.headers.get('authorization') === `Basic ${Buffer.from('root:').toString('base64')}`

Bun.serve({
  hostname: '127.0.0.1',
  port: 49_983,
  idleTimeout: 0,
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/health') return new Response(null, { status: 204 })
    if (request.headers.get('x-access-token') !== token) return new Response('unauthorized', { status: 401 })
    if (pathname === '/files') {
      if (searchParams.get('username') !== 'root') return Response.json({ message: 'no such user' }, { status: 401 })
      const path = searchParams.get('path') ?? ''
      return request.method === 'GET' ? files.download(path) : await files.upload(path, request)
    }
    const [, service = '', method = ''] = pathname.split('/')
    const isInput = /^(SendInput|CloseStdin|SendSignal|Update|List)$/.test(method)
    if (!isInput && !isUser(request)) return Response.json({ code: 'unauthenticated' }, { status: 401 })
    if (method === 'Start') return await processes.start(request)
    return await unary(service, method, request)
  },
})

if (process.env.INTERPRETER) createInterpreter(token)

// The internet of this sandbox is one port of the machine that the fake runs on, at its own address.
if (process.env.INTERNET) {
  const port = Number(process.env.INTERNET)
  createServer(socket => {
    const out = connect(3128, '127.0.0.1')
    socket.on('error', () => out.destroy())
    out.on('error', () => socket.destroy())
    socket.pipe(out).pipe(socket)
  }).listen(port, '127.0.0.1')
}
