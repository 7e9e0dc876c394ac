import { endToEnd, getValues, type Header, type ResponseHead } from '../../http1/head.ts'
import type { Passage } from '../preview/forward.ts'
import { refused } from '../preview/headers.ts'

/** Headers that concern the way to the sandbox, and tokens that are meant for this server. */
const ours =
  /^(host|e2b-sandbox-(id|port)|e2b-traffic-access-token|sec-websocket-.*|expect|(x-)?forwarded(-.*)?|via|x-real-ip)$/
/** A secret of this server. */
const secret = /\b(tb[a-z]|e2b)_/
/** Response headers that affect more than the port's own origin. */
const farReaching =
  /^(alt-svc|clear-site-data|strict-transport-security|public-key-pins.*|nel|report-to|reporting-endpoints|origin-agent-cluster|service-worker-allowed)$/

export interface PortWay {
  port: number
  /** Whether the port is reached by a host name of its own, and so has an origin of its own. */
  isByHost: boolean
  maskedHost: string | undefined
}

/** Decides which headers of a request go to a port and which come back: all that concern the port alone. */
export function passageOf(request: Request, { port, isByHost, maskedHost }: PortWay): Passage {
  const { pathname, search, host, protocol } = new URL(request.url)
  const asked = request.headers.get('host') ?? host
  const own = isByHost ? asked : `localhost:${port}`
  return {
    path: `${pathname}${search}`,
    headersInto() {
      const passed = endToEnd([...request.headers].map(([name, value]): Header => [name, value]))
      // Under this server's own address, a browser adds this server's cookies.
      const isKept = ([name, value]: Header) =>
        !ours.test(name) &&
        !(secret.test(value) && /^(authorization|x-api-key)$/.test(name)) &&
        (isByHost || name !== 'cookie')
      const scheme = request.headers.get('x-forwarded-proto') === 'https' ? 'https' : protocol.slice(0, -1)
      return [
        ['host', maskedHost?.replaceAll(/\$\{PORT\}/g, String(port)) ?? own],
        ...passed.filter(isKept),
        ['x-forwarded-host', asked],
        ['x-forwarded-proto', scheme],
      ]
    },
    headersOut: head => headersOut(head, isByHost),
  }
}

function headersOut(head: ResponseHead, isByHost: boolean): Headers {
  const headers = new Headers()
  for (const [name, value] of endToEnd(head.headers)) {
    if (name !== 'set-cookie' && !farReaching.test(name) && !refused.test(name)) headers.append(name, value)
  }
  // A cookie for the whole domain would reach every sandbox.
  if (isByHost)
    for (const cookie of getValues(head.headers, 'set-cookie'))
      headers.append('set-cookie', cookie.replaceAll(/;\s*domain\s*=[^;]*/gi, ''))
  // A port without a host name is on this server's origin, and its pages must not act as pages of this server.
  else headers.append('content-security-policy', 'sandbox allow-scripts')
  return headers
}
