import type { Sandbox } from '../../model/sandbox.ts'
import type { SecretBinding } from '../../model/secret.ts'
import type { Caller } from '../access/caller.ts'

/** Lists the secrets that a sandbox may use, for a key. Returns undefined for a token. */
export const describeSecrets = ({ token }: Caller, { network }: Sandbox): SecretBinding[] | undefined =>
  token ? undefined : (network.secrets ?? []).map(({ placeholder: _, ...binding }) => binding)
