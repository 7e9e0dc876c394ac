import { messageOf } from '../../src/errors.ts'
import type { Check } from '../../src/plugin-api/index.ts'
import type { Connection, Control } from './control.ts'

/** Checks what a server needs for sandboxes on E2B. */
export async function checkE2b(
  connection: Connection,
  control: Control,
  { publicUrl }: { publicUrl?: string },
): Promise<Check[]> {
  const key: Check = {
    name: 'E2B key',
    required: true,
    ok: Boolean(connection.E2B_API_KEY),
    detail: connection.E2B_API_KEY ? 'E2B_API_KEY is set' : 'E2B_API_KEY is not set',
    remedy: 'start with E2B_API_KEY, a key of your E2B project',
  }
  const gateway: Check = {
    name: 'way back',
    required: false,
    ok: publicUrl !== undefined,
    detail: publicUrl ?? 'engines that run inside a sandbox cannot reach the model gateway',
    remedy: 'start with --public-url, where sandboxes at E2B reach this server',
  }
  const { E2B_API_URL: apiUrl, E2B_SANDBOX_URL: sandboxUrl, E2B_DOMAIN: domain } = connection
  const sandboxes: Check = {
    name: 'way to sandboxes',
    required: false,
    ok: Boolean(sandboxUrl || domain || !apiUrl),
    detail: sandboxUrl ?? `hosts of ${domain ?? 'e2b.app, unless that E2B names others'}`,
    remedy: 'set E2B_SANDBOX_URL, the address of E2B Embed for traffic of sandboxes, or E2B_DOMAIN',
  }
  if (!key.ok) return [key, sandboxes, gateway]
  const answered = await control.probe().then(
    () => undefined,
    error => messageOf(error),
  )
  const api: Check = {
    name: 'E2B',
    required: true,
    ok: answered === undefined,
    detail: answered ?? `${connection.E2B_API_URL ?? connection.E2B_DOMAIN ?? 'e2b.app'} answers`,
    remedy: 'check E2B_API_KEY, E2B_API_URL and E2B_DOMAIN, and whether this machine can reach that address',
  }
  return [key, api, sandboxes, gateway]
}
