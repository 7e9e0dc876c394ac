import type { HarnessV1NetworkSandboxSession } from '@ai-sdk/harness'
import { isCode } from '../error.ts'
import type { Server } from '../server.ts'
import { rulesOf } from './network.ts'
import { createPlace } from './place.ts'
import { createPorts } from './ports.ts'
import { createRestricted } from './restricted.ts'
import { createTransformations, forgetTransformations, mayBind } from './transformations.ts'

export interface SessionOptions {
  /** The sandbox's id. */
  id: string
  ports: number[]
  /** When false, the caller keeps the sandbox: stop and destroy have no effect. */
  isOwned: boolean
  signal?: AbortSignal | undefined
}

/** Opens a session on an existing sandbox. Its first use starts a stopped sandbox. */
export async function openSession(
  server: Server,
  { id, ports, isOwned, signal }: SessionOptions,
): Promise<HarnessV1NetworkSandboxSession> {
  const [found, mayTransform] = await Promise.all([
    server.json<{ id: string; cwd: string; provider: string }>('GET', `/sandboxes/${encodeURIComponent(id)}`, {
      signal,
    }),
    mayBind(server, signal),
  ])
  // Sandboxes on E2B reach the network by themselves. Where there is no way, harnesses look for another one.
  const transforms = mayTransform && found.provider !== 'e2b'
  const place = createPlace(server, found)
  const end = async (method: string, path: string) => {
    if (!isOwned) return
    try {
      await server.request(method, `${place.path}${path}`)
    } catch (error) {
      if (!isCode(error, 'sandbox_not_found')) throw error
    }
  }
  const restricted = createRestricted(place, () => ports)
  return {
    ...restricted,
    get description() {
      return restricted.description
    },
    id: place.id,
    defaultWorkingDirectory: place.defaultWorkingDirectory,
    get ports() {
      return [...ports]
    },
    ...createPorts(place, ports),
    setNetworkPolicy: async policy => {
      await server.request('PATCH', place.path, { body: rulesOf(policy) })
    },
    ...(transforms && createTransformations(place)),
    stop: () => end('POST', '/stop'),
    destroy: async () => {
      await end('DELETE', '')
      if (transforms && isOwned) await forgetTransformations(place)
    },
    restricted: () => restricted,
  }
}
