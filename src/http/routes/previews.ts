import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Runtime } from '../../core/runtime.ts'
import { createLink } from '../../core/sandboxes/preview-links.ts'
import { findHost, openPreview } from '../../core/sandboxes/previews.ts'
import { ApiError } from '../../errors.ts'
import { HttpError } from '../../http1/http-error.ts'
import { optionalJson } from '../body.ts'
import { getCaller, getCallerOrVisitor } from '../caller.ts'
import { Lifetime, lifetimeMs, MAX_LINK_OF_KEY_MS } from '../lifetime.ts'
import { findPreviewAddress, mapPreview, parsePort, publicAddress } from '../preview/address.ts'
import { forward } from '../preview/forward.ts'
import { previewPassage } from '../preview/headers.ts'
import { isWebSocket, joinSocket } from '../preview/socket.ts'
import type { Sockets } from '../socket.ts'

const PortParams = Type.Object({ sandboxId: Type.String(), port: Type.String() })

/** Elysia cannot copy an object with the key `*`. */
const PathParams = Type.Record(Type.String(), Type.String())

const CreateLink = Type.Object({ expiresIn: Lifetime })

/** Any method and body: the server in the sandbox reads them. */
const passed = { params: PathParams, parse: 'none', detail: { hide: true } } as const

export const previewRoutes = (runtime: Runtime, sockets: Sockets) => {
  const preview = ({ request }: { request: Request }) => show(runtime, request, sockets)
  return new Elysia({ prefix: '/v1/sandboxes/:sandboxId/ports/:port' })
    .post(
      '/link',
      async ({ request, params: { sandboxId, port: portText }, body: { expiresIn }, status }) => {
        const port = parsePort(portText)
        const caller = getCaller(request)
        const { link, expiresAt } = createLink(runtime, caller, {
          sandbox: sandboxId,
          port,
          lifetimeMs: lifetimeMs(expiresIn, caller.token ? undefined : MAX_LINK_OF_KEY_MS),
        })
        const { origin, base } = publicAddress(runtime.config.publicUrl, request)
        const url = `${origin}${base}/v1/sandboxes/${sandboxId}/ports/${port}/${link}/`
        const host = await findHost(runtime, caller, { sandboxId, port })
        return status(201, { url, expiresAt, ...(host && { host }) })
      },
      { params: PortParams, ...optionalJson(CreateLink) },
    )
    .all('/', preview, passed)
    .all('/*', preview, passed)
}

async function show(runtime: Runtime, request: Request, sockets: Sockets): Promise<Response> {
  const address = findPreviewAddress(request)
  if (!address) throw new ApiError('not_found', 'There is no such endpoint.')
  const mapping = mapPreview(runtime.config.publicUrl, request, address)
  const { port } = mapping
  // A page's relative addresses are right only when its own address ends with a slash.
  if (address.path === '' && !isWebSocket(request)) {
    const location = `${mapping.address.prefix}/${new URL(request.url).search}`
    return new Response(null, { status: 307, headers: { location, 'referrer-policy': 'no-referrer' } })
  }
  const preview = await openPreview(runtime, getCallerOrVisitor(request), { sandboxId: address.sandboxId, port })
  try {
    request.signal.throwIfAborted()
    const passage = previewPassage(request, mapping)
    if (isWebSocket(request)) return await joinSocket(preview, request, passage, sockets)
    return await forward(preview, request, passage)
  } catch (error) {
    preview.stream.destroy()
    if (!(error instanceof HttpError)) throw error
    throw new ApiError('port_unreachable', `The server on port ${port}: ${error.message}.`)
  }
}
