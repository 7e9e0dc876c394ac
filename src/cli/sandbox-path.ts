import { UsageError } from './command-line.ts'

/** The API's path of a sandbox. Throws a UsageError for a text that cannot be an id. */
export function toSandboxPath(sandbox: string): string {
  if (sandbox === '' || sandbox === '.' || sandbox === '..') throw new UsageError('SANDBOX must be an id')
  return `/v1/sandboxes/${encodeURIComponent(sandbox)}`
}
