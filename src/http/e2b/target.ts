import { readE2bId } from '../../core/e2b/ids.ts'

/** The part of E2B's API that a request is for. */
export type E2bTarget =
  | { kind: 'control' }
  /** A port of a sandbox; commands and files have a port too. */
  | {
      kind: 'port'
      /** The sandbox's id as the client wrote it; absent when the request's token or signature names the sandbox. */
      named?: string
      /** Undefined when the client's text is not an id. */
      sandboxId?: string | undefined
      port: number
      /** Whether the request came to a host name of the port. */
      isByHost: boolean
    }

/** The port at which E2B's clients reach commands and files. */
export const ENVD_PORT = 49_983
/** The port at which they reach the code interpreter. */
export const INTERPRETER_PORT = 49_999

const control = /^\/(?:v[23]\/)?(?:sandboxes|snapshots|templates|volumes|secrets|teams)(?:\/|$)/
const versioned = /^\/v[23]\//
const envd = /^\/(?:files|files\/compose|health|metrics|envs|process\.Process\/\w+|filesystem\.Filesystem\/\w+)$/

/**
 * Finds out whether a request comes from E2B's clients, whose paths have no prefix: by the host, by the headers that they send,
 * or by a signature. Undefined for all other requests. Never throws.
 */
export function findE2bTarget(request: Request, previewDomain: string | undefined): E2bTarget | undefined {
  const { headers, method, url } = request
  const hosted = previewDomain === undefined ? undefined : readPortHost(headers.get('host'), previewDomain)
  if (hosted) return { kind: 'port', isByHost: true, ...hosted }
  const named = headers.get('e2b-sandbox-id')
  if (named !== null) {
    const port = readPort(headers.get('e2b-sandbox-port') ?? String(ENVD_PORT))
    return { kind: 'port', isByHost: false, named, sandboxId: readE2bId(named), port }
  }
  const { pathname, searchParams } = new URL(url)
  if (control.test(pathname)) {
    const isForPage = (method === 'GET' || method === 'HEAD') && !versioned.test(pathname)
    return isForPage && !headers.has('x-api-key') ? undefined : { kind: 'control' }
  }
  const isSigned = pathname === '/files' && searchParams.has('signature')
  if (isSigned || (headers.has('x-access-token') && envd.test(pathname)))
    return { kind: 'port', isByHost: false, port: ENVD_PORT }
  return undefined
}

/** Returns 0 for a text that is not a port. */
function readPort(text: string): number {
  const port = Number(text)
  return /^[1-9]\d{0,4}$/.test(text) && port < 65_536 ? port : 0
}

/** Reads `PORT-ID.DOMAIN`. Undefined for any other host. */
function readPortHost(host: string | null, domain: string) {
  const [name = ''] = (host ?? '').toLowerCase().split(':', 1)
  const [suffix = ''] = domain.split(':', 1)
  if (!name.endsWith(`.${suffix}`)) return undefined
  const label = name.slice(0, -suffix.length - 1)
  const [, port = '', named = ''] = /^(\d{1,5})-([a-z0-9-]{1,60})$/.exec(label) ?? []
  return { port: readPort(port), named: named || label, sandboxId: readE2bId(named) }
}
