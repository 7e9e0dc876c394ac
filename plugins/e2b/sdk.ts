import type { Sandbox as PlainSandbox } from 'e2b'
import { ApiError, messageOf } from '../../src/errors.ts'
import type { PortHost } from '../../src/plugin-api/index.ts'

/** The address of a sandbox's daemon, and the headers that authorise requests. Never logged. */
export interface Access {
  url: string
  headers: Readonly<Record<string, string>>
}

/** The port of the code interpreter, where a template has it. */
export const INTERPRETER_PORT = 49_999

const ENVD_PORT = 49_983

/**
 * The SDK, loaded at its first use: run from source it takes 100 ms and 30 MB. A sandbox of it also says where its daemon
 * is: the SDK's own running decode what a command prints as text, and here it is bytes.
 */
export async function loadSdk() {
  const [{ Sandbox: CodeSandbox }, errors] = await Promise.all([import('@e2b/code-interpreter'), import('e2b')])

  class Sandbox extends CodeSandbox {
    accessTo(port = ENVD_PORT): Access {
      const target = { sandboxDomain: this.sandboxDomain, envdPort: port }
      return {
        // One address for all sandboxes serves only the daemon's port: others have a host of their own.
        url:
          port === ENVD_PORT
            ? this.connectionConfig.getSandboxUrl(this.sandboxId, target)
            : this.connectionConfig.getSandboxDirectUrl(this.sandboxId, target),
        headers: {
          'e2b-sandbox-id': this.sandboxId,
          'e2b-sandbox-port': String(port),
          ...(this.envdAccessToken && { 'x-access-token': this.envdAccessToken }),
          ...this.#traffic(),
        },
      }
    }

    /** The address of a port for others. It does not give access to the daemon. */
    hostOf(port: number): PortHost {
      const { sandboxUrl } = this.connectionConfig
      if (!sandboxUrl) return { url: `https://${this.getHost(port)}`, headers: this.#traffic() }
      // One address for all sandboxes and ports, as the SDK's own interpreter uses it: the headers say which.
      const target = { 'e2b-sandbox-id': this.sandboxId, 'e2b-sandbox-port': String(port) }
      return { url: sandboxUrl, headers: { ...target, ...this.#traffic() } }
    }

    /** E2B gives it with each create and connect of a sandbox whose traffic is private; it stays the same. */
    #traffic(): Record<string, string> {
      return this.trafficAccessToken ? { 'e2b-traffic-access-token': this.trafficAccessToken } : {}
    }
  }

  /** The HTTP status of a control plane's error; undefined for an error of another kind. */
  const statusOf = (error: unknown): number | undefined => {
    if (error instanceof errors.RateLimitError) return 429
    if (error instanceof errors.ServiceBusyError) return 503
    if (error instanceof errors.NotFoundError) return 404
    if (error instanceof errors.AuthenticationError) return 401
    return error instanceof errors.SandboxError ? error.statusCode : undefined
  }

  return { Sandbox, statusOf }
}

export type Sdk = Awaited<ReturnType<typeof loadSdk>>
export type E2bSandbox = InstanceType<Sdk['Sandbox']>
export type SandboxNetwork = NonNullable<NonNullable<Parameters<typeof PlainSandbox.create>[1]>['network']>

/** Converts an error of the control plane to the error that a caller gets. */
export function toApiError(sdk: Sdk, error: unknown): ApiError {
  if (error instanceof ApiError) return error
  const status = sdk.statusOf(error)
  if (status === 404) return new ApiError('sandbox_unavailable', `E2B does not have this sandbox: ${messageOf(error)}`)
  const why =
    status === 401 ? 'E2B refuses the key: set E2B_API_KEY to one of this E2B' : `E2B failed: ${messageOf(error)}`
  return new ApiError('sandbox_unavailable', why)
}
