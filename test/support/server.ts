import { afterAll, beforeAll, setDefaultTimeout } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type Answer, ask, type RequestOptions, send } from './client.ts'
import { leftovers } from './leftovers.ts'

/** The executable under test. THREADBOX_TEST_EXECUTABLE names another one, as a release to be tried. */
export const executable = process.env.THREADBOX_TEST_EXECUTABLE ?? join(import.meta.dir, '../../dist/threadbox')

/** All that a server, or a command, has of the caller's environment. */
export const plainEnvironment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' }

export interface ServerOptions {
  flags?: readonly string[]
  env?: Record<string, string>
  cwd?: string
  /** What runs it, in front of `serve`. */
  command?: readonly string[]
  /** Default: a new one. */
  dataDirectory?: string
  /** Default: any free one. */
  port?: number
  /** Default: one of its own. Empty: none beside those of the database. */
  apiKey?: string
}

/** A server for all tests of the file that calls this. */
export function useServer(options?: ServerOptions): Server {
  patiently()
  const server = new Server(options)
  beforeAll(() => server.start())
  afterAll(() => server.close())
  return server
}

/** Jails start in tens of milliseconds; a busy machine may take a hundred times that. For the file that calls this. */
export const patiently = (): void => setDefaultTimeout(60_000)

/** A started server, in a data directory of its own. `await using` closes it. */
export const startServer = (options?: ServerOptions): Promise<Server> => new Server(options).start()

export interface CommandResult {
  code: number
  stdout: string
  stderr: string
}

/** Runs one command of the executable to its end. */
export async function command(
  args: readonly string[],
  {
    env = {},
    cwd = '/',
    command = [executable],
    stdin,
  }: Pick<ServerOptions, 'env' | 'cwd' | 'command'> & { stdin?: Uint8Array } = {},
): Promise<CommandResult> {
  const child = Bun.spawn([...command, ...args], {
    cwd,
    env: { ...plainEnvironment, ...env },
    stdio: [stdin ?? 'ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code, stdout, stderr }
}

/** A directory that sandboxes' own users can pass through. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-test-'))
  chmodSync(directory, 0o755)
  return directory
}

/** The built executable, serving. It can be stopped or killed, and started again on the same data directory. */
export class Server implements AsyncDisposable {
  key: string
  readonly dataDirectory: string
  url = ''
  /** What it has printed since its last start. */
  stdout = ''
  stderr = ''
  #process: Bun.Subprocess<'ignore', 'pipe', 'pipe'> | undefined
  #output: Promise<unknown> = Promise.resolve()

  constructor(readonly options: ServerOptions = {}) {
    this.key = options.apiKey ?? `test-${crypto.randomUUID()}`
    this.dataDirectory = options.dataDirectory ?? join(temporaryDirectory(), 'data')
  }

  get pid(): number {
    if (!this.#process) throw new Error('the server does not run')
    return this.#process.pid
  }

  /** Resolves when it listens. Rejects with what it said when it ends before. */
  async start(): Promise<this> {
    const { command = [executable], flags = [], port = 0, env, cwd = '/' } = this.options
    const child = Bun.spawn([...command, 'serve', '--data-dir', this.dataDirectory, '--port', `${port}`, ...flags], {
      cwd,
      env: { ...plainEnvironment, ...(this.key && { THREADBOX_API_KEY: this.key }), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#process = child
    this.stdout = ''
    this.stderr = ''
    const { promise: listening, resolve } = Promise.withResolvers<string>()
    const stdout = collect(child.stdout, text => {
      this.stdout += text
      const [, url] = /^threadbox listening on (\S+)\n/m.exec(this.stdout) ?? []
      if (url) resolve(url)
    })
    const stderr = collect(child.stderr, text => {
      this.stderr += text
    })
    this.#output = Promise.all([stdout, stderr])
    const url = await Promise.race([listening, this.#output.then(() => undefined)])
    if (!url) {
      const code = await this.ended()
      throw new Error(`the server ended with ${code} before it listened: ${this.stdout}${this.stderr}`)
    }
    this.url = url
    return this
  }

  /** SIGTERM. Its exit code. */
  stop(): Promise<number> {
    this.#process?.kill('SIGTERM')
    return this.ended()
  }

  /** SIGKILL: it has no moment to tidy up. */
  async kill(): Promise<void> {
    this.#process?.kill('SIGKILL')
    await this.ended()
  }

  /** Its exit code, when it has one. */
  async ended(): Promise<number> {
    if (!this.#process) throw new Error('the server does not run')
    const code = await this.#process.exited
    await this.#output
    this.#process = undefined
    return code
  }

  /** One request, with the server's key unless told otherwise. */
  request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    return send(this.url, method, path, { key: this.key, ...options })
  }

  /** One request and its whole answer. */
  ask(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Answer> {
    return ask(this.url, method, path, { key: this.key, ...(body !== undefined && { body }), ...options })
  }

  /** Makes a sandbox. Its id. */
  async sandbox(fields: object = {}): Promise<string> {
    return fulfilled(await this.ask('POST', '/v1/sandboxes', { agent: 'echo', ...fields })).id
  }

  /** Runs a command. What it answered. */
  async exec(sandboxId: string, command: string): Promise<{ stdout: string; stderr: string; exitCode: number }> {
    return fulfilled(await this.ask('POST', `/v1/sandboxes/${sandboxId}/exec`, { command }))
  }

  /** The stream of the reply to a text. */
  async chat(text: string, place: { sandboxId?: string; threadId?: string } = {}): Promise<Response> {
    const messages = [{ role: 'user', parts: [{ type: 'text', text }] }]
    const response = await this.request('POST', '/v1/chat/echo', { body: { ...place, messages } })
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    return response
  }

  /** Deletes its sandboxes, stops it and removes its directory. Throws when anything is left of them. */
  async close(): Promise<void> {
    if (!this.#process || this.#process.exitCode !== null || this.#process.signalCode) await this.start()
    const deleted: string[] = []
    for (;;) {
      const { sandboxes } = fulfilled(await this.ask('GET', '/v1/sandboxes'))
      if (sandboxes.length === 0) break
      for (const { id, sandboxId } of sandboxes) {
        fulfilled(await this.ask('DELETE', `/v1/sandboxes/${id}`))
        deleted.push(sandboxId)
      }
    }
    const left = await leftovers(...deleted)
    const others = this.#environments()
    const code = await this.stop()
    if (code !== 0) left.push(`exit code ${code}: ${this.stderr}`)
    left.push(...(await leftovers(`${this.dataDirectory}/`, ...others)))
    left.push(...this.#environments())
    rmSync(this.dataDirectory, { recursive: true })
    if (!this.options.dataDirectory) rmSync(join(this.dataDirectory, '..'), { recursive: true })
    if (left.length > 0) throw new Error(`${basename(this.dataDirectory)} left behind:\n${left.join('\n')}`)
  }

  /** Of nsjail; none where another backend was used. */
  #environments(): string[] {
    const directory = join(this.dataDirectory, 'sandboxes')
    return existsSync(directory) ? readdirSync(directory) : []
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function fulfilled({ status, body }: Answer): any {
  if (status >= 400) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body
}

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  for await (const bytes of stream) take(decoder.decode(bytes, { stream: true }))
}
