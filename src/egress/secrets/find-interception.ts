import type { Socket } from 'node:net'
import type { TunnelEnd } from '../../http1/tunnel.ts'
import type { Target } from '../policy.ts'
import type { Authority } from './authority.ts'
import { type BoundSecret, bindingsFor, type SecretUse } from './binding.ts'

export interface SecretParts {
  /** The secrets that a sandbox may use now; with a pass, those that a connection of whoever has it may use. */
  secretsOf?(environmentId: string, pass?: string): readonly BoundSecret[]
  /** Tells each use of a secret. Must not throw. */
  usedSecret?(environmentId: string, use: SecretUse): void
  /** Vouches for hosts with secrets towards programs inside. Without it no secret is used. */
  authority?: Authority | undefined
  /** Authorities, as PEM, that the certificates of hosts with secrets may come from; those that this process trusts unless given. */
  roots?: readonly string[] | undefined
}

/** What was dialled for a program. */
export interface ReachedHost {
  environmentId: string
  target: Target
  client: TunnelEnd
  upstream: Socket
  /** That the program has shown. */
  pass?: string | undefined
}

/**
 * Ends TLS between a program and what was reached for it, until both connections have ended, when secrets are bound to that.
 * Undefined for everything else. Loads nothing before the first secret is used.
 */
export function findInterception(
  { secretsOf = () => [], usedSecret = () => {}, authority, roots }: SecretParts,
  refused: (environmentId: string, target: Target, reason: string) => void,
  { environmentId, target, client, upstream, pass }: ReachedHost,
): Promise<void> | undefined {
  const { name, port, address } = target
  // A host that was reached by its address has none.
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
