import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { createNsjailBackend } from 'nsjail-wrapper'
import { newId } from '../../../src/db/id.ts'
import { type Box, createBox } from './box.ts'
import { openFront } from './front.ts'

export interface FakeOptions {
  /** Ports have hosts of their own, as in E2B's cloud. Without it headers alone lead to a sandbox, as in E2B Embed. */
  hasHosts?: boolean
  /** All the internet there is: a port of 127.0.0.1 inside, and the port of this machine that it leads to. */
  internet?: { inside: number; port(): number }
}

/** A request to the control plane, as it came. */
export interface Asked {
  method: string
  path: string
  body: any
}

/** Templates: with the code interpreter or without. */
const templates: Record<string, { interpreter: boolean; snapshot?: string }> = {
  base: { interpreter: false },
  'code-interpreter-v1': { interpreter: true },
}

const measured = () => ({
  ...{ timestamp: new Date().toISOString(), timestampUnix: Math.floor(Date.now() / 1000) },
  ...{ cpuCount: 2, cpuUsedPct: 25, memUsed: 100_000_000, memTotal: 512_000_000, memCache: 1_000_000 },
  ...{ diskUsed: 1_000_000_000, diskTotal: 10_000_000_000 },
})

const root = join(import.meta.dir, '../../..')
const PAGE = 3

/**
 * An E2B of our own: the REST control plane here, each sandbox a jail with an envd in it. A pause with memory stops all
 * of its processes, one without ends them; a sandbox whose time is up is paused or killed as its create asked for.
 */
export async function openFakeE2b(options: FakeOptions = {}) {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-e2b-'))
  const backend = createNsjailBackend({
    dataDirectory,
    executable: join(root, 'dist/threadbox'),
    nsjailPath: join(root, '.cache/nsjail/bin/nsjail'),
    serveProxy: (_, socket) => (options.internet ? reach(socket, options.internet.port()) : void socket.destroy()),
    log: line => console.error(`fake e2b: ${line}`),
  })
  const built = await Bun.build({ entrypoints: [join(import.meta.dir, 'envd.ts')], target: 'bun' })
  const daemon = await built.outputs[0]!.text()
  const boxes = new Map<string, Box>()
  const asked: Asked[] = []
  const fake = {
    key: 'e2b_0123456789abcdef',
    apiUrl: '',
    sandboxUrl: '',
    /** What it is made to answer instead, request by request. */
    answer: (_: Asked): Response | undefined => undefined,
    /** Whether the answer is lost after it was done. */
    isLost: (_: Asked): boolean => false,
    /** The same for what is asked of a sandbox, by its path. Undefined passes it on. */
    answerOfSandbox: (_path: string): string | undefined => undefined,
    asked,
    boxes,
    /** What the plugin needs in the environment. */
    get environment() {
      return { E2B_API_KEY: fake.key, E2B_API_URL: fake.apiUrl, E2B_SANDBOX_URL: fake.sandboxUrl }
    },
    async close() {
      for (const box of boxes.values()) await box.kill()
      await front.close()
      await server.stop(true)
      await backend.close()
      rmSync(dataDirectory, { recursive: true, force: true })
    },
  }
  const front = await openFront(boxes, path => fake.answerOfSandbox(path), options.hasHosts ?? false)
  fake.sandboxUrl = front.url

  const refusal = (code: number, message: string) => Response.json({ code, message }, { status: code })

  async function route({ method, path, body }: Asked, query: URLSearchParams): Promise<Response> {
    const [, id = '', action = ''] = /^(?:\/v2)?\/sandboxes\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? []
    if (path === '/v2/sandboxes' && method === 'GET') return list(query)
    if (path === '/v2/sandboxes' && method === 'POST') {
      const template = templates[body.templateID]
      if (!template) return refusal(404, `template '${body.templateID}' not found`)
      const box = await createBox(backend, daemon, { ...body, ...template, internet: options.internet?.inside })
      boxes.set(box.id, box)
      box.onGone = () => boxes.delete(box.id)
      return Response.json(box.access, { status: 201 })
    }
    const [, kept = ''] = /^\/templates\/(.+)$/.exec(decodeURIComponent(path)) ?? []
    if (kept !== '') {
      const name = kept.replace(/^team\//, '').replace(/:default$/, '')
      const { snapshot } = templates[`team/${name}:default`] ?? {}
      if (snapshot === undefined) return refusal(404, 'no such template')
      // Its files go with the last sandbox that shares them, which is this server's affair.
      delete templates[`team/${name}:default`]
      await backend.snapshots?.remove(snapshot)
      return new Response(null, { status: 204 })
    }
    const box = boxes.get(id)
    if (!box) return refusal(404, `Sandbox "${id}" doesn't exist or you don't have access to it`)
    switch (`${method} ${action}`) {
      case 'GET ':
        return Response.json(box.info)
      case 'GET metrics':
        if (box.state !== 'running') return Response.json([])
        return Response.json([measured()])
      case 'DELETE ':
        await box.kill()
        return new Response(null, { status: 204 })
      case 'POST snapshots': {
        const snapshot = newId('snap')
        await backend.snapshots?.take(box.environment.id, snapshot)
        const snapshotID = `team/${body.name}:default`
        templates[snapshotID] = { interpreter: false, snapshot }
        return Response.json({ snapshotID, names: [snapshotID] }, { status: 201 })
      }
      case 'POST connect':
        await box.resume()
        box.setTimeout(body.timeout ?? 15, { onlyLonger: true })
        return Response.json(box.access)
      case 'POST timeout':
        if (box.state !== 'running') return refusal(404, 'not running')
        box.setTimeout(body.timeout)
        return new Response(null, { status: 204 })
      case 'POST pause':
        if (box.state === 'paused') return refusal(409, 'already paused')
        await box.pause(body?.memory !== false)
        return new Response(null, { status: 204 })
      case 'PUT network':
        if (box.state !== 'running') return refusal(404, 'not running')
        box.network = body
        return new Response(null, { status: 204 })
      default:
        return refusal(404, 'no such route')
    }
  }

  function list(query: URLSearchParams): Response {
    const wanted = [...new URLSearchParams(query.get('metadata') ?? '')].map(pair => pair.map(decodeURIComponent))
    const states = (query.get('state') ?? 'running,paused').split(',')
    const found = [...boxes.values()].filter(
      box => states.includes(box.state) && wanted.every(([key = '', value]) => box.info.metadata[key] === value),
    )
    const from = Number(query.get('nextToken') ?? 0)
    const rest = found.length > from + PAGE
    return Response.json(
      found.slice(from, from + PAGE).map(({ info }) => info),
      { headers: rest ? { 'x-next-token': String(from + PAGE) } : {} },
    )
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (request.headers.get('x-api-key') !== fake.key) return refusal(401, 'Invalid API key')
      const text = await request.text()
      const call = { method: request.method, path: pathname, body: text === '' ? undefined : JSON.parse(text) }
      asked.push(call)
      const answer = fake.answer(call) ?? (await route(call, searchParams))
      return fake.isLost(call) ? refusal(500, 'lost') : answer
    },
  })
  fake.apiUrl = server.url.origin
  return fake
}

export type FakeE2b = Awaited<ReturnType<typeof openFakeE2b>>

/** Passes a program's connection on, once it has said where it begins. */
function reach(socket: Duplex, port: number): void {
  const upstream = connect(port, '127.0.0.1')
  socket.on('error', () => upstream.destroy())
  upstream.on('error', () => socket.destroy())
  socket.pipe(upstream).pipe(socket)
}
