import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { HttpError } from '../http1/http-error.ts'
import { createCarrier } from './carrier/carrier.ts'
import type { Decision, Refused } from './decision-log.ts'
import { dial, type Resolve } from './dial.ts'
import { type Destination, reset, serveDirect, targetOf } from './direct.ts'
import { fetchBy } from './fetch.ts'
import type { LocalHandler } from './local.ts'
import { createNamePool, type NamePool } from './names/pool.ts'
import { createFindRecords, type FindRecords } from './names/upstream.ts'
import type { PaceOptions } from './pace.ts'
import { currentPolicy, isAllowed, type Policy, type Target } from './policy.ts'
import { serveProxy } from './proxy.ts'
import { answerPlainly, createProxyClient } from './proxy-client.ts'
import { resolveBySystem } from './resolve.ts'
import { findInterception, type ReachedHost, type SecretParts } from './secrets/find-interception.ts'
import { createSshAgents } from './ssh/agents.ts'
import { type Connection, createTraffic, cutAll, type SandboxTraffic, TOO_MANY, type Turn } from './traffic.ts'

/** Connections of one sandbox's programs to the proxy, whatever they wait for. */
const MAX_CONNECTIONS = 256

export interface EgressParts extends SecretParts {
  /** What a sandbox may reach now. Throws when there is no such sandbox; it then reaches nothing. */
  policyOf(environmentId: string): Policy
  /** Tells the watchdog what begins now. */
  entered?(what: string): void
  /** Reports each decision. It must not throw. */
  decided?(environmentId: string, decision: EgressDecision): void
  /** Says one line to the operator. */
  log(line: string): void
  /** Answers requests for the proxy's own address. Without it they get a 404. */
  local?: LocalHandler
  /** The system's resolver unless given. */
  resolve?: Resolve
  /** Finds records that are not addresses. */
  findRecords?: FindRecords
  /** Makes the pool of addresses that stand for names inside one sandbox. By default the pool is empty. */
  createPool?(environmentId: string): NamePool
  /** The connections and next requests that one sandbox may make: more of them wait for their turn. */
  paces?: Partial<Record<Turn, PaceOptions>>
}

/** A decision about one connection of a sandbox. */
export type EgressDecision = Pick<Decision, 'host' | 'port' | 'isAllowed' | 'reason'>

/** Decisions since the server started. */
export interface EgressCounts {
  allowed: number
  refused: number
  /** `host port N: reason`. Programs that open tunnels often show only a 403. */
  lastRefusal?: string
}

/** The only way out of sandboxes. */
export interface Egress {
  /** Serves a program's connection to the HTTP proxy. The signal cuts it. */
  serve(environmentId: string, socket: Duplex, signal?: AbortSignal): void
  /**
   * Serves a connection that a program made to any address: joins it to that address if the sandbox's rules allow it. A program
   * whose connection is refused sees a reset. The signal cuts the connection.
   */
  serveDirect(environmentId: string, socket: Duplex, destination: Destination, signal?: AbortSignal): void
  /** Takes a connection of a program inside to the sandbox's SSH agent. */
  serveSshAgent(environmentId: string, socket: Duplex): void
  /**
   * A fetch by the sandbox's rules, http and https, from here; each redirect is decided anew. The caller bounds time by
   * `init.signal` and size by how much it reads. Rejects with an ApiError `forbidden` that says why it was refused.
   */
  fetch(environmentId: string, url: string, init?: RequestInit): Promise<Response>
  /**
   * Answers a DNS message of a program inside: a name that the rules allow has an address of the sandbox's pool, if the server's
   * resolver knows one. Undefined: it gets no answer. Never rejects.
   */
  answerName(environmentId: string, message: Uint8Array, transport: 'udp' | 'tcp'): Promise<Uint8Array | undefined>
  /** Cuts what the sandbox's rules no longer allow, and connections to hosts by name that are stale. */
  refresh(environmentId: string, isStale?: (target: Target) => boolean): void
  counts(environmentId: string): EgressCounts
  /** What was decided about a sandbox's connections since the server's start, the latest first. */
  decisions(environmentId: string): Decision[]
  /** Bytes that all sandboxes have sent and received since the server's start; of a connection that is still open, not all. */
  movedBytes(): { sent: number; received: number }
  /** The sandbox is gone: cuts all of it. */
  forget(environmentId: string): void
  close(): void
}

export function createEgress({
  policyOf,
  log,
  local,
  entered = () => {},
  decided = () => {},
  secretsOf = () => [],
  usedSecret = () => {},
  resolve = resolveBySystem,
  findRecords = createFindRecords(),
  createPool = createNamePool,
  paces,
  authority,
  roots,
}: EgressParts): Egress {
  const sandboxes = new Map<string, SandboxTraffic>()
  const carrier = createCarrier()
  const moved = { sent: 0, received: 0 }
  let isClosed = false

  const getTraffic = (environmentId: string): SandboxTraffic => {
    let traffic = sandboxes.get(environmentId)
    if (!traffic) {
      traffic = createTraffic({
        ...{ environmentId, resolve, findRecords, entered, log, ...(paces && { paces }) },
        names: createPool(environmentId),
        policy: () => policyOf(environmentId),
        refused: (target, reason) => refused(environmentId, target, reason),
      })
      sandboxes.set(environmentId, traffic)
    }
    return traffic
  }

  const refused = (environmentId: string, target: Refused, reason: string) => {
    const { name: host, port } = target
    getTraffic(environmentId).decisions.refused(target, reason)
    decided(environmentId, { host, port, isAllowed: false, reason })
  }

  const agents = createSshAgents({
    secretsOf,
    used: usedSecret,
    refused: (environmentId, target, reason) => refused(environmentId, target, reason),
  })

  const dialFrom = async (environmentId: string, target: Target, signal: AbortSignal, turn: Turn = 'connection') => {
    const traffic = getTraffic(environmentId)
    try {
      await traffic.takeTurn(turn, signal)
      const upstream = await dial({
        target,
        policy: () => currentPolicy(policyOf, environmentId),
        resolve: traffic.resolve,
        signal,
        onAllowed() {
          traffic.decisions.allowed(target)
          decided(environmentId, { host: target.name, port: target.port, isAllowed: true })
        },
        onSocket(socket, address) {
          traffic.open.set(socket, { target, address })
          socket.once('close', () => {
            traffic.open.delete(socket)
            moved.sent += socket.bytesWritten
            moved.received += socket.bytesRead
          })
        },
      })
      agents.watch(environmentId, target, upstream)
      return upstream
    } catch (error) {
      if (error instanceof HttpError && error.status === 403) refused(environmentId, target, error.message)
      else if (error instanceof HttpError) traffic.decisions.failed(target, error.message)
      throw error
    }
  }

  /** In the same turn for both ends: at no time is there a connection that cannot be cut. */
  const carry = ({ clients, open }: SandboxTraffic, client: Socket, upstream: Socket) => {
    const reached = agents.isWatched(upstream) ? undefined : open.get(upstream)
    const carried = reached && carrier.carry(client, upstream)
    if (!carried) return undefined
    clients.delete(client)
    clients.add(carried)
    open.set(carried, reached)
    const ended = carried.ended.then(() => {
      clients.delete(carried)
      open.delete(carried)
    })
    return { destroy: carried.destroy, ended }
  }

  const intercept = (host: ReachedHost) => {
    const { environmentId, client, upstream } = host
    const { open } = getTraffic(environmentId)
    const reached = open.get(upstream)
    const ended = findInterception({ secretsOf, usedSecret, authority, roots }, refused, host)
    if (!ended || !reached) return ended
    const connection = { destroy: () => void client.socket.destroy() }
    open.set(connection, reached)
    return ended.finally(() => open.delete(connection))
  }

  const isFull = ({ clients }: SandboxTraffic) => isClosed || clients.size >= MAX_CONNECTIONS

  /** Serves a program's connection, which counts until it has ended. */
  const admit = (
    traffic: SandboxTraffic,
    socket: Duplex,
    signal: AbortSignal | undefined,
    serve: (carry: (upstream: Socket) => Promise<void> | undefined) => Promise<void>,
  ) => {
    const { clients } = traffic
    clients.add(socket)
    let client: Connection = socket
    const cut = () => client.destroy()
    signal?.addEventListener('abort', cut)
    const carryFrom = (upstream: Socket) => {
      const carried = socket instanceof Socket ? carry(traffic, socket, upstream) : undefined
      if (carried) client = carried
      return carried?.ended
    }
    void serve(carryFrom).finally(() => {
      clients.delete(socket)
      signal?.removeEventListener('abort', cut)
    })
  }

  const findTarget = (environmentId: string, destination: Destination): Target => {
    try {
      return targetOf(destination, getTraffic(environmentId).names)
    } catch (error) {
      const { address: host, port } = destination
      if (error instanceof HttpError) refused(environmentId, { name: host, port }, error.message)
      throw error
    }
  }

  return {
    serve(environmentId, socket, signal) {
      const traffic = getTraffic(environmentId)
      if (isFull(traffic)) {
        const full = createProxyClient(socket)
        void answerPlainly(full, 503, TOO_MANY).finally(() => socket.destroy())
        return
      }
      admit(traffic, socket, signal, carry =>
        serveProxy(socket, {
          dial: (target, signal, turn) => dialFrom(environmentId, target, signal, turn),
          carry,
          sourceOf: agents.sourceOf,
          intercept: (target, client, upstream, pass) => intercept({ environmentId, target, client, upstream, pass }),
          entered: () => entered(`a request of ${environmentId} to the proxy`),
          local: async request => (local ? await local(request, environmentId) : notFound()),
        }),
      )
    },
    serveDirect(environmentId, socket, destination, signal) {
      const traffic = getTraffic(environmentId)
      if (isFull(traffic)) return reset(socket.on('error', () => {}))
      let target: Target | undefined
      admit(traffic, socket, signal, carry =>
        serveDirect(socket, {
          async dial(signal) {
            entered(`a connection of ${environmentId}`)
            target = findTarget(environmentId, destination)
            return await dialFrom(environmentId, target, signal)
          },
          carry,
          sourceOf: agents.sourceOf,
          intercept: (client, upstream) => target && intercept({ environmentId, target, client, upstream }),
        }),
      )
    },
    serveSshAgent: (environmentId, socket) => (isClosed ? void socket.destroy() : agents.serve(environmentId, socket)),
    fetch: (environmentId, url, init) =>
      fetchBy((target, signal) => dialFrom(environmentId, target, signal), url, init),
    answerName: async (environmentId, message, transport) =>
      isClosed ? undefined : await getTraffic(environmentId).answerName(message, transport),
    refresh(environmentId, isStale = () => false) {
      const traffic = sandboxes.get(environmentId)
      if (!traffic) return
      for (const [connection, { target, address }] of [...traffic.open]) {
        const isLeft = isAllowed(() => policyOf(environmentId), target, address) && (target.address || !isStale(target))
        if (!isLeft) connection.destroy()
      }
    },
    counts: environmentId => sandboxes.get(environmentId)?.decisions.counts() ?? { allowed: 0, refused: 0 },
    decisions: environmentId => sandboxes.get(environmentId)?.decisions.list() ?? [],
    movedBytes() {
      const [sent = 0, received = 0] = carrier.moved
      return { sent: moved.sent + sent, received: moved.received + received }
    },
    forget(environmentId) {
      const traffic = sandboxes.get(environmentId)
      sandboxes.delete(environmentId)
      agents.forget(environmentId)
      if (traffic) cutAll(traffic)
    },
    close() {
      isClosed = true
      for (const traffic of sandboxes.values()) cutAll(traffic)
      carrier.close()
    },
  }
}

const notFound = () => new Response('threadbox: there is nothing here\n', { status: 404 })
