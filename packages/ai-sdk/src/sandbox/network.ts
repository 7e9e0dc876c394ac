import type { HarnessV1NetworkPolicy } from '@ai-sdk/harness'

interface Rules {
  networkAllowOut: string[] | null
  networkDenyOut: string[] | null
}

/** The sandbox's own lists for a policy. Null is no opinion: the server's default and the agent's rules are left. */
export function rulesOf(policy: HarnessV1NetworkPolicy): Rules {
  if (policy.mode === 'allow-all') return { networkAllowOut: null, networkDenyOut: null }
  if (policy.mode === 'deny-all') return { networkAllowOut: [], networkDenyOut: null }
  const { allowedHosts = [], allowedCIDRs = [], deniedCIDRs = [] } = policy
  return {
    networkAllowOut: allowedHosts.includes('*') ? null : [...allowedHosts, ...allowedCIDRs],
    networkDenyOut: deniedCIDRs.length > 0 ? [...deniedCIDRs] : null,
  }
}
