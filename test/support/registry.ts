/** A registry of images on a free port, as docker pulls from it: https://distribution.github.io/distribution/spec/api/ */
export interface Registry {
  /** In front of a name: `127.0.0.1:PORT`. */
  host: string
  /** How often each path was asked for. */
  requests: string[]
  stop(): Promise<void>
}

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json'

/** Has one image `tools:1` of one layer; a name with `secret` is refused. */
export async function startRegistry(layer: Uint8Array<ArrayBuffer>): Promise<Registry> {
  const digestOf = (bytes: string | Uint8Array) =>
    `sha256:${new Bun.CryptoHasher('sha256').update(bytes).digest('hex')}`
  const blobs = new Map<string, string | Uint8Array<ArrayBuffer>>()
  const add = (bytes: string | Uint8Array<ArrayBuffer>, mediaType: string) => {
    blobs.set(digestOf(bytes), bytes)
    return { mediaType, digest: digestOf(bytes), size: Buffer.byteLength(bytes) }
  }
  const config = JSON.stringify({
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    config: { Env: ['PATH=/tools'] },
    rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
  })
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    config: add(config, 'application/vnd.docker.container.image.v1+json'),
    layers: [add(layer, 'application/vnd.docker.image.rootfs.diff.tar')],
  })
  const requests: string[] = []
  const refuse = (status: number, code: string) => Response.json({ errors: [{ code, message: code }] }, { status })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      requests.push(pathname)
      if (pathname === '/v2/') return Response.json({})
      if (pathname.includes('secret')) return refuse(401, 'UNAUTHORIZED')
      const digest = /\/blobs\/(sha256:\w+)$/.exec(pathname)?.[1] ?? ''
      const blob = blobs.get(digest)
      if (blob !== undefined) return new Response(blob)
      if (!/^\/v2\/tools\/manifests\/(1|sha256:\w+)$/.test(pathname)) return refuse(404, 'MANIFEST_UNKNOWN')
      const headers = { 'content-type': manifestType, 'docker-content-digest': digestOf(manifest) }
      return new Response(manifest, { headers })
    },
  })
  return { host: `127.0.0.1:${server.port}`, requests, stop: () => server.stop(true) }
}
