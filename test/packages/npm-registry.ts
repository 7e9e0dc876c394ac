import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { run } from '../../scripts/packages/run.ts'

/** A registry of npm that has just these packed packages. */
export async function serveRegistry(files: readonly string[]) {
  const tarballs = new Map(files.map(file => [basename(file), readFileSync(file)]))
  const manifests = await Promise.all(
    files.map(async file => ({
      file: basename(file),
      manifest: JSON.parse(await run(['tar', '-xzOf', file, 'package/package.json'])),
    })),
  )
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { origin, pathname } = new URL(request.url)
      const wanted = decodeURIComponent(pathname.slice(1))
      const tarball = tarballs.get(wanted)
      if (tarball) return new Response(tarball)
      const found = manifests.find(({ manifest }) => manifest.name === wanted)
      if (!found) return Response.json({ error: 'not found' }, { status: 404 })
      const { manifest, file } = found
      const { version } = manifest
      const sum = new Bun.CryptoHasher('sha512').update(tarballs.get(file) ?? '').digest('base64')
      const dist = { tarball: `${origin}/${file}`, integrity: `sha512-${sum}` }
      const versions = { [version]: { ...manifest, dist } }
      return Response.json({ name: wanted, 'dist-tags': { latest: version }, versions })
    },
  })
}
