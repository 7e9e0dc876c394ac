import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createPrivateKey } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createAuthorityStore } from '../../src/db/authority.ts'
import { createAuthority } from '../../src/egress/secrets/authority.ts'
import { makeAuthority, makeKey, makeLeaf } from '../../src/egress/secrets/certificates.ts'
import { useApp } from '../support/app.ts'

const VALUE = 'k3y_VaLue0123456789abcdefGHIJKLmnop'
const internet = makeAuthority()
const app = useApp(['--network-private', '127.0.0.0/8'], {}, () => [], {
  resolve: async () => ['127.0.0.1'],
  roots: [internet.certificate],
})

/** What the host was told: the protocol, and whether by who has the secret. */
const told: string[] = []
const key = makeKey()
const server = createSecureServer(
  {
    key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: makeLeaf(createPrivateKey(internet.key), key, 'api.test'),
    allowHTTP1: true,
  },
  (request: Http2ServerRequest, response: Http2ServerResponse) => {
    const { authorization, 'x-token': token } = request.headers
    told.push(`${request.httpVersion} ${authorization === `Bearer ${VALUE}`} ${token === VALUE}`)
    response.end(`you said ${authorization}`)
  },
)
afterAll(() => server.close())
let id = ''
let origin = ''
beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  origin = `https://api.test:${port}`
  await app.ask('PUT', '/v1/secrets/API', { value: VALUE })
  const hosts = [`api.test:${port}`]
  id = await app.sandbox({
    networkAllowOut: [`*.test:${port}`, `127.0.0.0/8:${port}`],
    secrets: [
      { secret: 'API', hosts, as: { header: 'authorization', format: 'Bearer {}' } },
      { secret: 'API', hosts, as: { env: 'API_TOKEN' } },
    ],
  })
})

const direct = 'env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY -u all_proxy'
const python = `python3 -c 'import os, sys, urllib.request as u
print(u.urlopen(u.Request(sys.argv[1], headers={"x-token": os.environ["API_TOKEN"]})).read().decode())' `
const node = `node -e 'fetch(process.argv[1], { headers: { "x-token": process.env.API_TOKEN } }).then(r => r.text()).then(t => console.log(t), e => console.log(e.cause ?? e))' `

test.each([
  ['curl', 'curl -sS --http1.1 -H "x-token: $API_TOKEN" ', '1.1'],
  ['curl with HTTP/2', 'curl -sS -H "x-token: $API_TOKEN" ', '2.0'],
  ['curl without a proxy', `${direct} curl -sS -H "x-token: $API_TOKEN" `, '2.0'],
  ['Python', python, '1.1'],
  ['Python without a proxy', `${direct} ${python}`, '1.1'],
  ['Node without a proxy', `${direct} ${node}`, '1.1'],
])('%s uses a secret that is not in the sandbox', async (_, command, version) => {
  const said = await app.shell(id, `${command}${origin}/x 2>&1`)
  expect(said).toContain(`you said Bearer ${'*'.repeat(VALUE.length)}`)
  expect(told.pop()).toBe(`${version} true true`)
})

test('nothing in the sandbox or the data directory has it, and the authority is kept', async () => {
  const parts = `'${VALUE.slice(0, 12)}''${VALUE.slice(12)}'`
  const search = `env | grep -c -F -e ${parts}; grep -rlsFa -e ${parts} /etc/threadbox /proc/[0-9]*/environ /proc/[0-9]*/cmdline; true`
  expect((await app.shell(id, search)).trim()).toBe('0')
  // The database and what lies beside it, without the sandboxes' own files.
  for (const entry of readdirSync(app.directory, { withFileTypes: true })) {
    const content = entry.isFile() ? readFileSync(join(app.directory, entry.name), 'latin1') : ''
    expect(content.includes(VALUE) || content.includes('PRIVATE KEY')).toBe(false)
  }
  expect(app.log.join()).not.toContain(VALUE)
  const again = createAuthority(createAuthorityStore(app.runtime.db))
  expect(await app.shell(id, 'cat /etc/threadbox/authority.crt')).toBe(await again.certificatePem())
})
