import type { Database } from 'bun:sqlite'
import { createKeyedLock } from '../../async/lock.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { findNetwork, findSandboxOf, saveNetwork } from '../../db/sandboxes.ts'
import type { EgressCounts } from '../../egress/egress.ts'
import { assertRules, type Layer, parseRules } from '../../egress/rules.ts'
import { ApiError } from '../../errors.ts'
import type { AgentOptions } from '../../model/agent.ts'
import type { NetworkRules, Sandbox, SandboxNetwork } from '../../model/sandbox.ts'
import type { Caller } from '../access/caller.ts'
import type { Config } from '../config.ts'
import type { Networks, Runtime } from '../runtime.ts'
import { boundSecretsOf } from '../secrets/bound-secrets.ts'

/** The rules that a request sets for its sandbox. Null removes a list. */
export interface NetworkRequest {
  networkAllowOut?: string[] | null
  networkDenyOut?: string[] | null
}

export function createNetworks(db: Database, { network: mode, networkPrivate: ceiling }: Config): Networks {
  const prepared = new Map<string, { network: SandboxNetwork; teamId?: string }>()
  return {
    policyOf(environmentId) {
      const network = findNetwork(db, environmentId) ?? prepared.get(environmentId)?.network
      if (!network) throw new ApiError('sandbox_not_found', 'There is no such sandbox.')
      return { mode, ceiling, layers: layersOf(networkLayers(network)) }
    },
    secretsOf(environmentId) {
      const early = prepared.get(environmentId)
      const { secrets = [] } = findNetwork(db, environmentId) ?? early?.network ?? {}
      if (secrets.length === 0) return []
      const teamId = findSandboxOf(db, environmentId)?.teamId ?? early?.teamId
      return teamId === undefined ? [] : boundSecretsOf(db, teamId, secrets)
    },
    prepare(environmentId, network, teamId) {
      if (network) prepared.set(environmentId, { network, ...(teamId !== undefined && { teamId }) })
      else prepared.delete(environmentId)
    },
    inTurn: createKeyedLock(),
  }
}

/** Each of them must allow. */
export const networkLayers = ({ agent, own }: SandboxNetwork): NetworkRules[] =>
  [agent, own].filter(rules => rules !== undefined)

/** A new sandbox's network: its agent's rules, narrowed by the request's. Throws invalid_request, and forbidden for a token. */
export function narrowNetwork(caller: Caller, options: AgentOptions, request: NetworkRequest): SandboxNetwork {
  const agent = mergeRules(options, {}, "the agent's ")
  const own = mergeRules(request, {})
  if (own) assertMayNarrow(caller)
  return { ...(agent && { agent }), ...(own && { own }) }
}

/**
 * The network of a sandbox that is copied from another: the other's network, with the lists of the request in place of its own.
 * Throws as `narrowNetwork` does.
 */
export function networkOfCopy(caller: Caller, { agent, own }: SandboxNetwork, request: NetworkRequest): SandboxNetwork {
  if (request.networkAllowOut || request.networkDenyOut) assertMayNarrow(caller)
  const rules = mergeRules(request, own ?? {})
  return { ...(agent && { agent }), ...(rules && { own: rules }) }
}

/**
 * Changes a sandbox's own rules at once; what they no longer allow is cut. The agent's stay. An environment that reaches
 * the network by itself has the new rules first: when that fails, nothing changes.
 */
export async function changeNetwork(
  runtime: Runtime,
  caller: Caller,
  sandbox: Sandbox,
  request: NetworkRequest,
): Promise<Sandbox> {
  assertMayNarrow(caller)
  const { db, config, egress, environments, backends, networks } = runtime
  const { environmentId } = sandbox
  if (backends.get(sandbox.backend)?.egress !== 'own') {
    const network = mergeNetwork(sandbox.network, request)
    saveNetwork(db, sandbox.id, network)
    egress.refresh(environmentId)
    return { ...sandbox, network }
  }
  return await networks.inTurn(environmentId, async () => {
    const network = mergeNetwork(findNetwork(db, environmentId) ?? sandbox.network, request)
    const environment = await environments.get(sandbox)
    await environment.setNetwork?.({ mode: config.network, layers: networkLayers(network) })
    await writeWhenFree(db, () => saveNetwork(db, sandbox.id, network))
    egress.refresh(environmentId)
    return { ...sandbox, network }
  })
}

/** A sandbox's network with the lists of its own that a request replaces. Throws invalid_request. */
export function mergeNetwork(before: SandboxNetwork, request: NetworkRequest): SandboxNetwork {
  const { own = {}, ...rest } = before
  const rules = mergeRules(request, own)
  return { ...rest, ...(rules && { own: rules }) }
}

/** As the sandbox's detail shows it: what the lists come to, and how often it was decided by them. */
export function describeNetwork(
  { config, egress }: Runtime,
  { network, environmentId }: Sandbox,
): {
  mode: Config['network']
  /** Null: no list narrows it. */
  allowOut: string[] | null
  denyOut: string[]
  /** What the agent's list allows beside; both must allow. Absent without one. */
  agentAllowOut?: string[]
  decisions: EgressCounts
} {
  const { agent = {}, own = {} } = network
  return {
    mode: config.network,
    allowOut: own.allowOut ?? agent.allowOut ?? null,
    denyOut: [...new Set([...(agent.denyOut ?? []), ...(own.denyOut ?? [])])],
    ...(own.allowOut && agent.allowOut && { agentAllowOut: agent.allowOut }),
    decisions: egress.counts(environmentId),
  }
}

function mergeRules(request: NetworkRequest, before: NetworkRules, prefix = ''): NetworkRules | undefined {
  const { networkAllowOut: allow = before.allowOut, networkDenyOut: deny = before.denyOut } = request
  if (allow) assertRules(`${prefix}networkAllowOut`, allow)
  if (deny) assertRules(`${prefix}networkDenyOut`, deny)
  return allow || deny ? { ...(allow && { allowOut: allow }), ...(deny && { denyOut: deny }) } : undefined
}

/** An end user's token would open what the app had closed. Throws forbidden. */
export function assertMayNarrow({ token }: Caller): void {
  if (token) throw new ApiError('forbidden', 'A token cannot set the network rules of a sandbox.')
}

/** Compiles lists of rules for the proxy. Throws for a rule that is wrong. */
export const layersOf = (lists: readonly NetworkRules[]): Layer[] =>
  lists.map(({ allowOut, denyOut = [] }) => ({
    ...(allowOut && { allow: parseRules(allowOut) }),
    deny: parseRules(denyOut),
  }))
