import { afterAll } from 'bun:test'
import { createPrivateKey } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { makeAuthority, makeKey, makeLeaf } from '../../src/egress/secrets/certificates.ts'
import type { RuntimeOptions } from '../../src/start/runtime.ts'

/** A host with TLS at `api.test`, for the tests of one file. The server under test finds it by `reach`. */
export function createSecretHost(answer: (headers: IncomingHttpHeaders, url: string) => string) {
  const internet = makeAuthority()
  const key = makeKey()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls: {
      key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
      cert: makeLeaf(createPrivateKey(internet.key), key, 'api.test'),
    },
    fetch: ({ headers, url }) => new Response(answer(Object.fromEntries(headers), url)),
  })
  afterAll(() => server.stop(true))
  const { port } = server
  return {
    port,
    hosts: [`api.test:${port}`],
    origin: `https://api.test:${port}`,
    networkAllowOut: [`*.test:${port}`, `127.0.0.0/8:${port}`],
    reach: { resolve: async () => ['127.0.0.1'], roots: [internet.certificate] } satisfies RuntimeOptions['reach'],
  }
}
