// usage: bun scripts/proofs/serve-packages.ts DIRECTORY TARBALL…: serves the directory's files, and a registry of npm with these packages.
import { join } from 'node:path'
import { serveRegistry } from '../../test/packages/npm-registry.ts'

const [directory = '', ...tarballs] = process.argv.slice(2)
const registry = await serveRegistry(tarballs)
const files = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: ({ url }) => new Response(Bun.file(join(directory, new URL(url).pathname))),
})
console.log(`registry ${registry.url.href} files ${files.url.href}`)
