import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createLimit } from '../../async/limit.ts'
import { type ByteSource, createByteSource } from '../../http1/byte-source.ts'
import type { Target } from '../policy.ts'
import { type BoundSecret, keysFor, type SecretUse } from '../secrets/binding.ts'
import { type SshSession, serveAgent } from './agent.ts'
import { watchExchange } from './exchange.ts'

/** How many connections one sandbox's programs may have to the agent; a login needs one as long as it takes. */
const MAX_CONNECTIONS = 32
/**
 * The pause after an answer to one sandbox, and the multiple of the answer's own time for which it lasts: a program may ask
 * without end.
 */
const PAUSE_MS = 2
const PAUSE_TIMES = 4

export interface SshAgentsParts {
  secretsOf(environmentId: string): readonly BoundSecret[]
  used(environmentId: string, use: SecretUse): void
  refused(environmentId: string, target: Pick<Target, 'name' | 'port'>, reason: string): void
}

/** The SSH agents of all sandboxes, and what they know of open connections. */
export interface SshAgents {
  /** Serves a program inside that speaks to its agent. */
  serve(environmentId: string, socket: Duplex): void
  /** Watches a connection that was just made, if the sandbox has a key for its target. */
  watch(environmentId: string, target: Target, upstream: Socket): void
  /** Whether the bytes from a server must be read here. */
  isWatched(upstream: Socket): boolean
  /** Reads a connection that was made, and observes its key exchange. */
  sourceOf(upstream: Socket): ByteSource
  forget(environmentId: string): void
}

interface Agent {
  clients: Set<Duplex>
  sessions: Map<Socket, SshSession>
  inTurn: <T>(work: () => Promise<T>) => Promise<T>
}

export function createSshAgents({ secretsOf, used, refused }: SshAgentsParts): SshAgents {
  const agents = new Map<string, Agent>()
  const watches = new WeakMap<Socket, ReturnType<typeof watchExchange>>()

  const getAgent = (environmentId: string): Agent => {
    let agent = agents.get(environmentId)
    if (!agent) {
      const turns = createLimit(1)
      const inTurn: Agent['inTurn'] = work =>
        turns(async () => {
          const begunAt = performance.now()
          try {
            return await work()
          } finally {
            await Bun.sleep(Math.max(PAUSE_MS, PAUSE_TIMES * (performance.now() - begunAt)))
          }
        })
      agent = { clients: new Set(), sessions: new Map(), inTurn }
      agents.set(environmentId, agent)
    }
    return agent
  }

  return {
    serve(environmentId, socket) {
      const { clients, sessions, inTurn } = getAgent(environmentId)
      if (clients.size >= MAX_CONNECTIONS) return void socket.on('error', () => {}).destroy()
      clients.add(socket)
      const parts = {
        keys: () => secretsOf(environmentId).filter(({ as }) => 'ssh' in as),
        sessions: () => sessions.values(),
        used: (use: SecretUse) => used(environmentId, use),
        refused: (target: Pick<Target, 'name' | 'port'>, reason: string) => refused(environmentId, target, reason),
      }
      void serveAgent(socket, parts, inTurn).finally(() => clients.delete(socket))
    },
    watch(environmentId, target, upstream) {
      if (
        target.address ||
        upstream.destroyed ||
        keysFor(secretsOf(environmentId), target.name, target.port).length === 0
      )
        return
      const { sessions } = getAgent(environmentId)
      const watch = watchExchange(identity => sessions.set(upstream, { target, identity, logins: 0 }))
      watches.set(upstream, watch)
      upstream.once('close', () => sessions.delete(upstream))
    },
    isWatched: upstream => watches.has(upstream),
    sourceOf(upstream) {
      const source = createByteSource(upstream)
      const watch = watches.get(upstream)
      if (!watch) return source
      let isWatching = true
      const seen = <Bytes extends Buffer | undefined>(bytes: Bytes): Bytes => {
        if (bytes && isWatching) isWatching = watch.take(bytes)
        return bytes
      }
      return { ...source, read: async () => seen(await source.read()), takeAhead: () => seen(source.takeAhead()) }
    },
    forget(environmentId) {
      for (const client of agents.get(environmentId)?.clients ?? []) client.destroy()
      agents.delete(environmentId)
    },
  }
}
