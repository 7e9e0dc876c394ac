import type { Socket } from 'node:net'
import type { TunnelEnd } from '../../http1/tunnel.ts'
import type { Target } from '../policy.ts'
import type { Authority } from './authority.ts'
import { type BoundSecret, bindingsFor, type SecretUse } from './binding.ts'

export interface SecretParts {
  /** The secrets that a sandbox may use now; with a pass, those that were lent for the pass. */
  secretsOf?(environmentId: string, pass?: string): readonly BoundSecret[]
  /** Reports each use of a secret. It must not throw. */
  usedSecret?(environmentId: string, use: SecretUse): void
  /** The authority for hosts with secrets. Without it no secret is used. */
  authority?: Authority | undefined
  /**
   * Authorities, as PEM, that may have issued the certificates of hosts with secrets. By default those that this process trusts.
   */
  roots?: readonly string[] | undefined
}

/** The target of a connection that was made for a program. */
export interface ReachedHost {
  environmentId: string
  target: Target
  client: TunnelEnd
  upstream: Socket
  /** The pass that the program has sent. */
  pass?: string | undefined
}

/**
 * Ends TLS between a program and the host that was reached for it when secrets are bound to that host, until both connections
 * have ended. Undefined for everything else. Loads nothing before the first use of a secret.
 */
export function findInterception(
  { secretsOf = () => [], usedSecret = () => {}, authority, roots }: SecretParts,
  refused: (environmentId: string, target: Target, reason: string) => void,
  { environmentId, target, client, upstream, pass }: ReachedHost,
): Promise<void> | undefined {
  const { name, port, address } = target
  // A host that was reached by its address gets no secrets.
  const secrets = () => (address ? [] : bindingsFor(secretsOf(environmentId, pass), name, port))
  try {
    if (!authority || secrets().length === 0) return undefined
  } catch (error) {
    upstream.destroy()
    throw error
  }
  return import('./intercept.ts').then(({ intercept }) =>
    intercept(client, upstream, {
      ...{ target, secrets, authority },
      used: use => usedSecret(environmentId, use),
      refused: reason => refused(environmentId, target, reason),
      ...(roots && { roots }),
    }),
  )
}
