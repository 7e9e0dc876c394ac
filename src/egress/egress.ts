import { lookup } from 'node:dns/promises'
import type { Duplex } from 'node:stream'
import { createLimit } from '../async/limit.ts'
import { HttpError } from '../http1/http-error.ts'
import type { Address } from './addresses.ts'
import { createDecisionLog, type DecisionLog } from './decision-log.ts'
import { dial, type Resolve } from './dial.ts'
import { fetchBy } from './fetch.ts'
import type { LocalHandler } from './local.ts'
import { findDenial, type Policy, type Target } from './policy.ts'
import { serveProxy } from './proxy.ts'
import { answerPlainly, createProxyClient } from './proxy-client.ts'

/** Connections of one sandbox's programs to the proxy, whatever they wait for. */
const MAX_CONNECTIONS = 256
/** Names that one sandbox may resolve at once. Lookups share threads, which slow ones of one sandbox would hold. */
const MAX_LOOKUPS = 8

export interface EgressParts {
  /** What a sandbox may reach now. Throws when there is no such sandbox; it then reaches nothing. */
  policyOf(environmentId: string): Policy
  /** Tells the watchdog what begins now. */
  entered?(what: string): void
  /** Says one line to the operator. */
  log(line: string): void
  /** Answers requests for the proxy's own address. Without it they get a 404. */
  local?: LocalHandler
  /** The system's resolver unless given. */
  resolve?: Resolve
}

/** Decisions since the server started. */
export interface EgressCounts {
  allowed: number
  refused: number
  /** `host port N: reason`. Programs that open tunnels often show only a 403. */
  lastRefusal?: string
}

/** The only way out of sandboxes. */
export interface Egress {
  /** Takes a connection of a program inside that speaks to its HTTP proxy. */
  serve(environmentId: string, socket: Duplex): void
  /**
   * A fetch by the sandbox's rules, http and https, from here; each redirect is decided anew. The caller bounds time by
   * `init.signal` and size by how much it reads. Rejects with an ApiError `forbidden` that says why it was refused.
   */
  fetch(environmentId: string, url: string, init?: RequestInit): Promise<Response>
  /** Cuts what the sandbox's rules no longer allow. */
  refresh(environmentId: string): void
  counts(environmentId: string): EgressCounts
  /** The sandbox is gone: cuts all of it. */
  forget(environmentId: string): void
  close(): void
}

interface Connection {
  target: Target
  address: Address
  cut(): void
}

/** What one sandbox has open here. */
interface SandboxTraffic {
  clients: Set<Duplex>
  open: Set<Connection>
  decisions: DecisionLog
  resolve: Resolve
}

export function createEgress({
  policyOf,
  log,
  local,
  entered = () => {},
  resolve = resolveBySystem,
}: EgressParts): Egress {
  const sandboxes = new Map<string, SandboxTraffic>()
  let isClosed = false

  const getTraffic = (environmentId: string): SandboxTraffic => {
    let traffic = sandboxes.get(environmentId)
    if (!traffic) {
      const lookups = createLimit(MAX_LOOKUPS)
      traffic = {
        clients: new Set(),
        open: new Set(),
        decisions: createDecisionLog(environmentId, log),
        resolve: name => lookups(() => resolve(name)),
      }
      sandboxes.set(environmentId, traffic)
    }
    return traffic
  }

  const dialFrom = async (environmentId: string, target: Target, signal: AbortSignal) => {
    const traffic = getTraffic(environmentId)
    try {
      return await dial({
        target,
        policy: () => currentPolicy(policyOf, environmentId),
        resolve: traffic.resolve,
        signal,
        onAllowed: () => traffic.decisions.allowed(target),
        onSocket(socket, address) {
          const connection = { target, address, cut: () => socket.destroy() }
          traffic.open.add(connection)
          socket.once('close', () => traffic.open.delete(connection))
        },
      })
    } catch (error) {
      if (error instanceof HttpError && error.status === 403) traffic.decisions.refused(target, error.message)
      throw error
    }
  }

  const cutAll = ({ clients, open }: SandboxTraffic) => {
    for (const { cut } of [...open]) cut()
    for (const client of [...clients]) client.destroy()
  }

  return {
    serve(environmentId, socket) {
      const { clients } = getTraffic(environmentId)
      if (isClosed || clients.size >= MAX_CONNECTIONS) {
        const full = createProxyClient(socket)
        void answerPlainly(full, 503, 'too many connections at once').finally(() => socket.destroy())
        return
      }
      clients.add(socket)
      void serveProxy(socket, {
        dial: (target, signal) => dialFrom(environmentId, target, signal),
        entered: () => entered(`a request of ${environmentId} to the proxy`),
        local: async request => (local ? await local(request, environmentId) : notFound()),
      }).finally(() => clients.delete(socket))
    },
    fetch: (environmentId, url, init) =>
      fetchBy((target, signal) => dialFrom(environmentId, target, signal), url, init),
    refresh(environmentId) {
      const traffic = sandboxes.get(environmentId)
      if (!traffic) return
      for (const { target, address, cut } of [...traffic.open]) {
        if (!isAllowed(() => policyOf(environmentId), target, address)) cut()
      }
    },
    counts: environmentId => sandboxes.get(environmentId)?.decisions.counts() ?? { allowed: 0, refused: 0 },
    forget(environmentId) {
      const traffic = sandboxes.get(environmentId)
      sandboxes.delete(environmentId)
      if (traffic) cutAll(traffic)
    },
    close() {
      isClosed = true
      for (const traffic of sandboxes.values()) cutAll(traffic)
    },
  }
}

function isAllowed(policy: () => Policy, target: Target, address: Address): boolean {
  try {
    return findDenial(policy(), target, address) === undefined
  } catch {
    return false
  }
}

/** Throws an HttpError when the rules cannot be read: nothing is reached then. */
function currentPolicy(policyOf: EgressParts['policyOf'], environmentId: string): Policy {
  try {
    return policyOf(environmentId)
  } catch {
    throw new HttpError(503, 'the rules of this sandbox are not known')
  }
}

const notFound = () => new Response('threadbox: there is nothing here\n', { status: 404 })

const resolveBySystem: Resolve = async name => {
  const found = await lookup(name, { all: true, order: 'verbatim' })
  return found.map(({ address }) => address)
}
