import type { HarnessV1NetworkPolicy } from '@ai-sdk/harness'

interface Rules {
  networkAllowOut: string[] | null
  networkDenyOut: string[] | null
}

/** Translates a policy into the sandbox's own lists. Null leaves the server's default and the agent's rules as they are. */
export function rulesOf(policy: HarnessV1NetworkPolicy): Rules {
  if (policy.mode === 'allow-all') return { networkAllowOut: null, networkDenyOut: null }
  if (policy.mode === 'deny-all') return { networkAllowOut: [], networkDenyOut: null }
  const { allowedHosts = [], allowedCIDRs = [], deniedCIDRs = [] } = policy
  return {
    networkAllowOut: allowedHosts.includes('*') ? null : [...allowedHosts, ...allowedCIDRs],
    networkDenyOut: deniedCIDRs.length > 0 ? [...deniedCIDRs] : null,
  }
}
