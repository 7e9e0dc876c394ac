import { afterEach } from 'bun:test'
import { tmpdir } from 'node:os'
import { createAnthropic } from '@ai-sdk/anthropic'
import { streamText } from 'ai'
import { createApp } from '../../src/app.ts'
import { createKey } from '../../src/core/access/keys.ts'
import { createBundles } from '../../src/core/agents/bundles.ts'
import { createAuditLog } from '../../src/core/audit/audit-log.ts'
import { createE2bLives } from '../../src/core/e2b/lives.ts'
import { createEventFeed } from '../../src/core/events/feed.ts'
import { createLimits } from '../../src/core/limits/limits.ts'
import { createTeamLimits } from '../../src/core/limits/team-limits.ts'
import { createObservers } from '../../src/core/observe/observers.ts'
import { createSteerings } from '../../src/core/queue/steering.ts'
import type { Runtime } from '../../src/core/runtime.ts'
import { createNetworks } from '../../src/core/sandboxes/networks.ts'
import { createProcessEvents } from '../../src/core/sandboxes/process-events.ts'
import { createSpares } from '../../src/core/sandboxes/spares/spares.ts'
import { createUses } from '../../src/core/sandboxes/uses.ts'
import { createScheduler } from '../../src/core/schedules/scheduler.ts'
import { createTrust } from '../../src/core/trust/trust.ts'
import { saveAgent } from '../../src/db/agents.ts'
import { findTeam } from '../../src/db/teams.ts'
import { openDiskSpace } from '../../src/disk/space.ts'
import { createEgress } from '../../src/egress/egress.ts'
import { messageOf } from '../../src/errors.ts'
import type { AgentOptions } from '../../src/model/agent.ts'
import type { Engine, Environment, TurnOptions } from '../../src/plugin-api/index.ts'
import { createRuns } from '../../src/runs/registry.ts'
import { readConfig } from '../../src/start/config.ts'
import { type Frame, read } from '../runs/support.ts'
import { type GatewayScene, gatewayScene } from './support.ts'

type SceneOptions = Parameters<typeof gatewayScene>[0]

/** Makes a model call for each line of the prompt, and says what it answers. */
function modelEngine(given: TurnOptions[]): Engine {
  return {
    name: 'model',
    async *run({ prompt }, { openModel, signal, options }) {
      given.push(options)
      const { baseUrl, token, fetch, id } = openModel()
      const model = createAnthropic({ baseURL: baseUrl, apiKey: token, fetch })(id)
      const text = String(prompt[0]?.parts[0]?.text)
      for (const [index, line] of text.split('\n').entries()) {
        // Cleanup that takes for ever must not hide what was spent.
        const isDeaf = line.includes('DEAF')
        const errors: unknown[] = []
        const answer = streamText({
          model,
          prompt: line,
          maxRetries: 0,
          abortSignal: signal,
          onError: e => void errors.push(e.error),
        })
        for await (const delta of answer.textStream) yield { type: 'text', id: `t${index}`, delta }
        if (signal.aborted && isDeaf) await new Promise(() => {})
        if (signal.aborted) return { status: 'cancelled' }
        if (line.includes('THROW')) throw new Error('broken engine')
        if (errors.length > 0)
          return { status: 'failed', error: { code: 'internal_error', message: messageOf(errors[0]) } }
        // Engines may count too: it is the gateway's count that holds.
        yield { type: 'usage', inputTokens: 999, outputTokens: 999, costUsd: 999 }
      }
      return { status: 'completed' }
    },
  }
}

export interface ChatApp extends GatewayScene {
  runtime: Runtime
  key: string
  /** What engines were given. */
  options: TurnOptions[]
  agent(slug: string, options: AgentOptions): void
  request(method: string, path: string, body?: unknown, key?: string): Promise<Response>
  /** Starts a chat, and reads it until its end or until `enough`. */
  chat(
    slug: string,
    text: string,
    fields?: object,
  ): Promise<{ ids: Record<string, string>; body: ReadableStream<Uint8Array> }>
  frames(body: ReadableStream<Uint8Array>): Promise<Frame[]>
}

const running: { runtime: Runtime; server: Bun.Server<undefined> }[] = []
afterEach(async () => {
  for (const { runtime, server } of running.splice(0)) {
    await runtime.runs.close(0)
    await server.stop(true)
  }
})

/** The whole application in this process, with environments that do nothing. */
export async function chatApp(sceneOptions: SceneOptions = {}): Promise<ChatApp> {
  const scene = gatewayScene(sceneOptions)
  const { db, gateway } = scene
  const log = (line: string) => void scene.log.push(line)
  const environment = (id: string) =>
    ({ id, confinement: [], files: {}, destroy: async () => {} }) as unknown as Environment
  const options: TurnOptions[] = []
  const config = await readConfig(['--data-dir', '/nonexistent'], {})
  config.models.budgets = sceneOptions.budgets ?? {}
  const networks = createNetworks(db, config)
  const runtime: Runtime = {
    config,
    db,
    readyBackends: { troubleOf: async () => undefined },
    events: createEventFeed(db),
    processEvents: createProcessEvents(db, log),
    observers: createObservers(log),
    schedules: createScheduler(() => runtime),
    e2b: createE2bLives(() => runtime),
    metrics: { families: async () => [], include() {} },
    audit: createAuditLog(db, log),
    backends: new Map(),
    engines: new Map([['model', modelEngine(options)]]),
    uses: createUses(new Map()),
    environments: {
      create: async ({ id }) => environment(id),
      get: async ({ environmentId }) => environment(environmentId),
      hold: () => ({ [Symbol.dispose]() {} }),
      takeHeld: () => [],
      troubleOf: () => undefined,
      findRunning: () => undefined,
      handStopped: async () => {},
      processesOf: () => {
        throw new Error('none here')
      },
      destroy: async () => {},
    },
    limits: createLimits(config.callerLimits),
    teamLimits: createTeamLimits(db, config.callerLimits),
    spares: createSpares(() => runtime),
    runs: createRuns(db, { log, graceMs: 200 }),
    steerings: createSteerings(),
    bundles: createBundles(db, config.dataDirectory),
    gateway,
    networks,
    trust: createTrust({ secretsOf: () => [], certificatePem: async () => '', log }),
    egress: createEgress({ policyOf: networks.policyOf, log }),
    diskSpace: await openDiskSpace({ directory: tmpdir(), reserveMb: 0, log }),
    log,
  }
  const app = createApp(runtime)
  // A stream of chunks is written to a connection itself: without one nothing of it could be read on the way.
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: received => app.fetch(received) })
  running.push({ runtime, server })
  const { key } = createKey(db, { team: 'default', name: 'test' })
  const request = (method: string, path: string, body?: unknown, as = key) =>
    fetch(`${server.url.origin}${path}`, {
      method,
      headers: { authorization: `Bearer ${as}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const agent = (slug: string, agentOptions: AgentOptions) => {
    const sandbox = { files: {}, envs: {}, setup: [], limits: {} }
    const model = 'anthropic/claude-sonnet-4-6'
    saveAgent(db, findTeam(db, 'default')!.id, {
      slug,
      name: slug,
      engine: 'model',
      model,
      sandbox,
      options: agentOptions,
    })
  }
  agent('coder', {})
  return {
    ...scene,
    runtime,
    key,
    options,
    agent,
    request,
    async chat(slug, text, fields = {}) {
      const messages = [{ role: 'user', parts: [{ type: 'text', text }] }]
      const answer = await request('POST', `/v1/chat/${slug}`, { messages, ...fields })
      if (!answer.body || answer.status !== 200) throw new Error(await answer.text())
      const ids = { sandboxId: answer.headers.get('x-sandbox-id')!, threadId: answer.headers.get('x-thread-id')! }
      return { ids, body: answer.body }
    },
    frames: async body => (await read(body)).frames,
  }
}
