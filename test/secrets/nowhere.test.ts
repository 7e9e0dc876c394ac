import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { command, Server, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'
import { Authority } from '../tls/certificates.ts'

const scratch = temporaryDirectory()
const authority = new Authority(scratch)
const server = new Server({
  dataDirectory: join(scratch, 'data'),
  flags: ['--network-private', '127.0.0.0/8'],
  env: { NODE_EXTRA_CA_CERTS: authority.certFile },
})
const [FIRST, SECOND] = ['ghp_marked1marked1marked1marked1marked11', 'ghp_marked2marked2marked2marked2marked22']
const PART = /marked[12]marked/

/** What the host got. It answers with all of it. */
const seen: { path: string; authorization: string; field: string; body: string }[] = []
let host: Bun.Server<undefined>
let id = ''

const set = (value: string) =>
  command(['secrets', 'set', 'GITHUB', '--data-dir', server.dataDirectory], { stdin: Buffer.from(`${value}\n`) })
/** By the proxy: the name of this test's host means the sandbox itself inside. */
const curl = (path: string, rest = '') =>
  server.exec(id, `curl -sS --noproxy '' -x http://127.0.0.1:3128 https://localhost:${host.port}${path} ${rest}`)

beforeAll(async () => {
  const { cert, key } = authority.issue('host')
  host = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls: { cert: Bun.file(cert), key: Bun.file(key) },
    async fetch(request) {
      const { headers } = request
      const got = {
        path: new URL(request.url).pathname,
        authorization: headers.get('authorization') ?? '',
        field: headers.get('x-field') ?? '',
        body: await request.text(),
      }
      seen.push(got)
      return Response.json(got, { headers: { 'x-got': got.authorization } })
    },
  })
  await server.start()
  await set(FIRST)
  const hosts = [`localhost:${host.port}`]
  id = await server.sandbox({
    networkAllowOut: [...hosts, '127.0.0.0/8'],
    secrets: [
      { secret: 'GITHUB', hosts, as: { header: 'authorization', format: 'Bearer {}' } },
      { secret: 'GITHUB', hosts, as: { env: 'GITHUB_TOKEN' } },
    ],
  })
})

afterAll(async () => {
  await server.close()
  await host.stop(true)
  rmSync(scratch, { recursive: true, force: true })
})

test('a program uses secrets by header and placeholder, as they are now, until they are removed', async () => {
  const first = await curl('/first', '-H "x-field: $GITHUB_TOKEN" -d "token=$GITHUB_TOKEN"')
  expect(seen.at(-1)).toEqual({
    path: '/first',
    authorization: `Bearer ${FIRST}`,
    field: FIRST,
    body: `token=${FIRST}`,
  })
  expect(first.stdout).toContain('"path":"/first"')
  expect(first.stdout).not.toMatch(PART)
  await set(SECOND)
  await curl('/second', '-i -H "x-field: $GITHUB_TOKEN"')
  expect(seen.at(-1)).toMatchObject({ authorization: `Bearer ${SECOND}`, field: SECOND })
  await command(['secrets', 'remove', 'GITHUB', '--data-dir', server.dataDirectory])
  const { stdout } = await curl('/third', '-w "%{http_code}"')
  expect([seen.length, stdout]).toEqual([2, expect.stringContaining('502')])
})

test('a secret that was used is nowhere: in no file, process, log, journal or answer: regression', async () => {
  const rows = async () => (await server.ask('GET', '/v1/audit?action=secret.used')).body.rows
  await until(async () => (await rows()).length >= 2)
  const paths = [`/v1/sandboxes/${id}`, `/v1/sandboxes/${id}/network/decisions`, '/v1/secrets', '/v1/audit']
  for (const path of paths) expect(JSON.stringify((await server.ask('GET', path)).body)).not.toMatch(PART)
  expect((await rows()).map(({ detail }: any) => detail.path).sort()).toEqual(['/first', '/second'])

  const inside = await server.exec(
    id,
    "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; grep -rahsE 'marked[12]marked' /home /tmp /etc /root /run /var/log /dev/shm",
  )
  expect(inside.stdout).toContain('GITHUB_TOKEN=ghp_')
  expect(inside.stdout).not.toMatch(PART)

  expect(server.stdout + server.stderr).not.toMatch(PART)
  for (const name of ['environ', 'cmdline'])
    expect(readFileSync(`/proc/${server.pid}/${name}`, 'latin1')).not.toMatch(PART)
  // With the database's log, which has what is not in its file yet.
  const files = readdirSync(server.dataDirectory).filter(name => name.startsWith('threadbox.'))
  expect(files).toContain('threadbox.db')
  for (const name of files)
    expect([name, PART.test(readFileSync(join(server.dataDirectory, name), 'latin1'))]).toEqual([name, false])
})
