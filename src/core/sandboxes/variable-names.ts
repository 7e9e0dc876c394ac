import type { Sandbox } from '../../model/sandbox.ts'
import type { Caller } from '../access/caller.ts'

/** Lists the names of a sandbox's own variables, for a key. Returns undefined for a token, and when they cannot be decrypted. */
export function findVariableNames({ token }: Caller, sandbox: Sandbox): string[] | undefined {
  if (token) return undefined
  try {
    return Object.keys(sandbox.envs).sort()
  } catch {
    // A sandbox whose key is lost can still be shown and deleted.
    return undefined
  }
}
