import { openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { readEvents } from '../server-client.ts'
import { type Transfer, type TransferOptions, transfer } from './transfer.ts'

/** The server under measurement: a process of its own. */
export interface BenchServer extends AsyncDisposable {
  readonly url: string
  readonly pid: number
  /** The time from the start of the process until it reported that it listens. */
  readonly listeningAfterMs: number
  /** Sends a request and returns its parsed answer. Throws the server's error when the request is refused. */
  ask<Answer = unknown>(method: string, path: string, body?: object): Promise<Answer>
  /** Sends a request and returns its answer, whatever its status. */
  request(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<Response>
  /** Sends a request over its own connection. Throws when it is refused. */
  transfer(path: string, options?: TransferOptions): Promise<Transfer>
  /** Makes a sandbox of the agent echo. */
  create(fields?: object): Promise<SandboxIds>
  /** Runs a command to its end. Throws when it fails. */
  exec(sandbox: Pick<SandboxIds, 'id'>, command?: string): Promise<string>
  delete(sandbox: Pick<SandboxIds, 'id'>): Promise<void>
  /** Sends a message and reads the whole reply. Returns the ids of its place. */
  chat(text: string, fields?: object, onChunk?: (type: string) => void): Promise<ReplyPlace>
  /** Resolves when the process has ended. */
  stop(): Promise<void>
}

export interface SandboxIds {
  id: string
  /** The sandbox's id. */
  sandboxId: string
}

export interface ReplyPlace {
  sandboxId: string
  threadId: string
  runId: string
}

export interface StartOptions {
  executable: string
  flags: readonly string[]
  env: Record<string, string | undefined>
  /** The file that receives the server's stderr. */
  log: string
  /** Stops the server. */
  signal: AbortSignal
}

/** A server that has not ended this long after SIGTERM is killed. */
const STOP_MS = 5000

export async function startServer({ executable, flags, env, log, signal }: StartOptions): Promise<BenchServer> {
  const key = `bench-${crypto.randomUUID()}`
  const startedAt = performance.now()
  const child = Bun.spawn([executable, 'serve', ...flags], {
    env: { ...env, THREADBOX_API_KEY: key },
    stdio: ['ignore', 'pipe', openSync(log, 'a', 0o600)],
  })
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= (async () => {
      signal.removeEventListener('abort', stop)
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
      await child.exited
      clearTimeout(timer)
    })()
    return stopped
  }
  signal.addEventListener('abort', stop)
  const url = await readUrl(child.stdout)
  const listeningAfterMs = performance.now() - startedAt
  if (!url) {
    await stop()
    throw new Error(`the server did not start: ${(await readFile(log, 'utf8')).trim()}`)
  }
  return { ...connect(url, key), url, pid: child.pid, listeningAfterMs, stop, [Symbol.asyncDispose]: stop }
}

async function readUrl(stdout: ReadableStream<Uint8Array>): Promise<string | undefined> {
  let printed = ''
  for await (const bytes of stdout) {
    printed += Buffer.from(bytes)
    const [, url] = /^threadbox listening on (\S+)\n/m.exec(printed) ?? []
    if (url) return url
  }
  return undefined
}

type Connection = Omit<BenchServer, 'url' | 'pid' | 'listeningAfterMs' | 'stop' | typeof Symbol.asyncDispose>

function connect(url: string, key: string): Connection {
  const authorization = `Bearer ${key}`
  const request: Connection['request'] = (method, path, body, headers) =>
    fetch(url + path, {
      method,
      headers: { authorization, ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
  const ask: Connection['ask'] = async (method, path, body) => {
    const response = await request(method, path, body)
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  return {
    request,
    ask,
    async transfer(path, options = {}) {
      const done = await transfer(url + path, { ...options, headers: { authorization, ...options.headers } })
      if (done.status >= 400) throw new Error(`${path}: ${done.status} ${done.tail}`)
      return done
    },
    create: fields => ask('POST', '/v1/sandboxes', { agent: 'echo', ...fields }),
    async exec({ id }, command = 'true') {
      type Result = { stdout: string; stderr: string; exitCode: number }
      const { stdout, stderr, exitCode } = await ask<Result>('POST', `/v1/sandboxes/${id}/exec`, { command })
      if (exitCode !== 0) throw new Error(`${command.slice(0, 100)}: exit code ${exitCode}: ${stderr.trim()}`)
      return stdout
    },
    delete: ({ id }) => ask('DELETE', `/v1/sandboxes/${id}`),
    async chat(text, fields, onChunk) {
      const messages = [{ role: 'user', parts: [{ type: 'text', text }] }]
      const response = await request('POST', '/v1/chat/echo', { ...fields, messages })
      if (!response.ok) throw new Error(`chat: ${response.status} ${await response.text()}`)
      for await (const json of readEvents(response)) onChunk?.(json)
      const header = (name: string) => response.headers.get(name) ?? ''
      return { sandboxId: header('x-sandbox-id'), threadId: header('x-thread-id'), runId: header('x-run-id') }
    },
  }
}
