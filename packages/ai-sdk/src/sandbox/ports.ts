import { HarnessCapabilityUnsupportedError, type HarnessV1NetworkSandboxSession } from '@ai-sdk/harness'
import type { Place } from './place.ts'
import { PROVIDER_ID } from './provider-id.ts'

type Ports = Pick<HarnessV1NetworkSandboxSession, 'getPortEndpoint' | 'getPortUrl' | 'setPorts'>

/** The longest lifetime of a link. Each look-up makes a new link. */
const LINK_LIFETIME = '30d'

/**
 * Opens ports by links of the server. The signature is a part of the path, so a URL needs no header, and queries and WebSockets
 * work. A link ends with the sandbox, with the key, or after 30 days.
 */
export function createPorts(place: Place, ports: number[]): Ports {
  const getPortUrl: Ports['getPortUrl'] = async ({ port, protocol }) => {
    if (!ports.includes(port)) {
      throw new HarnessCapabilityUnsupportedError({
        message: `The port ${port} is none of those of the sandbox (${ports.join(', ')}): add it to \`ports\` of createThreadboxSandbox().`,
        harnessId: PROVIDER_ID,
      })
    }
    const { url } = await place.server.json<{ url: string }>('POST', `${place.path}/ports/${port}/link`, {
      body: { expiresIn: LINK_LIFETIME },
    })
    // The address at which this program reaches the server is used, whatever the server's own name for itself is.
    const { pathname } = new URL(url)
    const at = pathname.indexOf('/v1/sandboxes/')
    if (at < 0) throw new Error('The server gave no link to the port.')
    const opened = new URL(`${place.server.baseUrl}${pathname.slice(at)}`)
    if (protocol === 'ws') opened.protocol = opened.protocol === 'https:' ? 'wss:' : 'ws:'
    return opened.href
  }
  return {
    getPortUrl,
    getPortEndpoint: async options => ({ url: await getPortUrl(options) }),
    async setPorts(wanted, { abortSignal } = {}) {
      abortSignal?.throwIfAborted()
      ports.splice(0, ports.length, ...wanted)
    },
  }
}
