import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, setDefaultTimeout } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { aiSdk } from '../../plugins/ai-sdk/index.ts'
import { echo } from '../../plugins/echo/index.ts'
import { nsjail } from '../../plugins/nsjail/index.ts'
import { createApp } from '../../src/app.ts'
import { createKey } from '../../src/core/access/keys.ts'
import { applyAgent } from '../../src/core/agents/versions.ts'
import type { Config } from '../../src/core/config.ts'
import type { Runtime } from '../../src/core/runtime.ts'
import { openDatabase } from '../../src/db/open.ts'
import { findTeam } from '../../src/db/teams.ts'
import { answerOf, type SocketHandlers, websocket } from '../../src/http/socket.ts'
import type { AgentSandbox } from '../../src/model/agent.ts'
import type { Plugin } from '../../src/plugin-api/index.ts'
import { readConfig } from '../../src/start/config.ts'
import { guestExecutable } from '../../src/start/executable.ts'
import { createRuntime, type OpenRuntime, type RuntimeOptions } from '../../src/start/runtime.ts'
import { type Answer, ask, type RequestOptions, send } from './client.ts'
import { createDescription } from './described.ts'
import { leftovers } from './leftovers.ts'

/** The application on a free port, with a database and a backend `nsjail` of its own, for the tests of one file. */
export function useApp(
  flags: readonly string[] = [],
  environment: Record<string, string> = {},
  plugins: () => readonly Plugin[] = () => [],
  reach: RuntimeOptions['reach'] = {},
): TestApp {
  // Jails start in tens of milliseconds; a busy machine may take a hundred times that.
  setDefaultTimeout(60_000)
  const app = new TestApp(flags, environment, plugins, reach)
  beforeAll(() => app.start())
  afterAll(() => app.stop())
  return app
}

export class TestApp {
  /** A key of the team `default`. */
  key = ''
  /** A key of another team. */
  foreignKey = ''
  url = ''
  runtime!: Runtime
  /** What the operator sees. */
  readonly log: string[] = []
  /** Every environment that was ever asked for. */
  readonly environmentIds: string[] = []
  readonly directory = mkdtempSync(join(tmpdir(), 'threadbox-http-'))
  #close: OpenRuntime['close'] = async () => {}
  #server: Bun.Server<SocketHandlers> | undefined
  #assertDescribed: ReturnType<typeof createDescription> | undefined

  constructor(
    readonly flags: readonly string[],
    /** Where the gateway finds the keys of providers. */
    readonly environment: Record<string, string>,
    /** Beside those that every app has. */
    readonly plugins: () => readonly Plugin[],
    readonly reach: RuntimeOptions['reach'] = {},
  ) {}

  get databasePath(): string {
    return join(this.directory, 'threadbox.db')
  }

  async start(): Promise<void> {
    // Sandboxes' own users pass through.
    chmodSync(this.directory, 0o711)
    const config = await readConfig(['--data-dir', this.directory, ...this.flags], {})
    const { runtime, close } = await this.#open(config)
    this.runtime = runtime
    this.#close = close
    this.key = createKey(this.runtime.db, { team: 'default', name: 'test' }).key
    this.foreignKey = createKey(this.runtime.db, { team: 'other', name: 'test' }).key
    const app = createApp(this.runtime, {
      addressOf: request => server.requestIP(request)?.address,
      upgrade: (request, data, headers) => server.upgrade(request, { data, ...(headers && { headers }) }),
    })
    const server = Bun.serve<SocketHandlers>({
      websocket,
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      // As in the build: an answer's body that breaks is not printed.
      development: false,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      fetch: async request => answerOf(await app.fetch(request)),
    })
    this.#server = server
    this.url = this.#server.url.origin
  }

  async #open(config: Config): Promise<OpenRuntime> {
    const sandboxes = nsjail({
      executable: guestExecutable,
      nsjailPath: join(import.meta.dir, '../../.cache/nsjail/bin/nsjail'),
    })
    const opened = await createRuntime(config, {
      plugins: [sandboxes, echo, aiSdk, ...this.plugins()],
      variables: this.environment,
      ...(this.reach && { reach: this.reach }),
      log: line => void this.log.push(line),
    })
    const { environments } = opened.runtime
    opened.runtime.environments = {
      ...environments,
      create: spec => {
        this.environmentIds.push(spec.id)
        return environments.create(spec)
      },
    }
    return opened
  }

  /** Ends everything. Throws when something of a sandbox is left. */
  async stop(): Promise<void> {
    const { runs, backends, environments } = this.runtime
    await runs.close(0)
    // A backend that was never used is left alone: its first use would make what it needs.
    for (const backend of this.environmentIds.length > 0 ? backends.values() : []) {
      for (const environmentId of await backend.list())
        await environments.destroy({ backend: backend.name, environmentId })
    }
    await this.#server?.stop(true)
    await this.#close()
    const left = await leftovers(...this.environmentIds)
    rmSync(this.directory, { recursive: true, force: true })
    if (left.length > 0) throw new Error(`left behind:\n${left.join('\n')}`)
  }

  /** One request, as the team `default` unless told otherwise. */
  request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    return send(this.url, method, path, { key: this.key, ...options })
  }

  /** One request and its whole answer, as JSON when it is. Throws when it is not as the API's description has it. */
  async ask(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Answer> {
    const answer = await ask(this.url, method, path, { key: this.key, ...(body !== undefined && { body }), ...options })
    this.#assertDescribed ??= createDescription(
      (await ask(this.url, 'GET', '/v1/openapi.json', { key: this.key })).body,
    )
    this.#assertDescribed(method, path, answer)
    return answer
  }

  /** Makes a sandbox. Returns its id. */
  async sandbox(fields: object = {}): Promise<string> {
    const { status, body } = await this.ask('POST', '/v1/sandboxes', { agent: 'echo', ...fields })
    if (status !== 201) throw new Error(`no sandbox: ${JSON.stringify(body)}`)
    return body.id
  }

  /** Runs a command. Returns what it answered, also when that is an error. */
  async exec(sandboxId: string, command: string, fields: object = {}): Promise<any> {
    return (await this.ask('POST', `/v1/sandboxes/${sandboxId}/exec`, { command, ...fields })).body
  }

  /** Runs a command that must succeed. Returns its stdout. */
  async shell(sandboxId: string, command: string): Promise<string> {
    const result = await this.exec(sandboxId, command)
    if (result.exitCode !== 0) throw new Error(JSON.stringify(result))
    return result.stdout
  }

  /** Deploys an agent of the team `default`, as `threadbox agents apply` beside the server does. */
  agent(slug: string, sandbox: Partial<AgentSandbox> = {}, fields: object = {}): void {
    this.beside(db => {
      const team = findTeam(db, 'default')!
      const defaults = { files: {}, envs: {}, setup: [], limits: {} }
      applyAgent(db, team.id, {
        slug,
        name: slug,
        engine: 'echo',
        sandbox: { ...defaults, ...sandbox },
        options: {},
        ...fields,
      })
    })
  }

  /** Works on the database by a connection of its own, as another process does. */
  beside<Result>(work: (db: Database) => Result): Result {
    const db = openDatabase(this.databasePath)
    try {
      return work(db)
    } finally {
      db.close()
    }
  }
}
