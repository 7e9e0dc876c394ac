import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createPrivateKey } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import ssh2 from 'ssh2'
import { docker } from '../../plugins/docker/index.ts'
import { makeAuthority, makeKey, makeLeaf } from '../../src/egress/secrets/certificates.ts'
import { readPrivateKey } from '../../src/egress/ssh/private-key.ts'
import { guestExecutable } from '../../src/start/executable.ts'
import { useApp } from '../support/app.ts'
import { importClients } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { startSshServer } from '../support/ssh-server.ts'

const VALUE = 'k3y_VaLue0123456789abcdefGHIJKLmnop'
const MASK = '*'.repeat(VALUE.length)
const internet = makeAuthority()
const app = useApp(
  ['--network-private', '127.0.0.0/8', '--backend', 'docker'],
  {},
  () => [docker({ executable: guestExecutable, image: 'clients', variables: { DOCKER_HOST: dockerd.host } })],
  { resolve: async () => ['127.0.0.1'], roots: [internet.certificate] },
)

// It is closed after the application, which removes its containers.
const dockerd = useDockerd()

const { private: key } = ssh2.utils.generateKeyPairSync('ed25519')
let ssh: Awaited<ReturnType<typeof startSshServer>>
let host: Server
let origin = ''
let id = ''

/** What the host was told by whoever has the secret. It repeats all of it. */
const told: string[] = []

beforeAll(async () => {
  await importClients(dockerd.api)
  const hostKey = makeKey()
  host = createServer(
    {
      key: hostKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      cert: makeLeaf(createPrivateKey(internet.key), hostKey, 'api.test'),
    },
    ({ url = '', headers }, response) => {
      const { authorization = '', 'x-key': header, 'x-token': token } = headers
      const isGit = url.startsWith('/repository')
      const password = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString()
      if (isGit && password !== `git:${VALUE}`) return void response.writeHead(401).end()
      if (url.startsWith('/repository/info/refs')) return void response.end(`${'a'.repeat(40)}\trefs/heads/main\n`)
      if (isGit) return void response.end('ref: refs/heads/main\n')
      told.push(`${header === VALUE} ${password === `git:${VALUE}`} ${token === VALUE}`)
      response.end(`${header} ${token}`)
    },
  )
  await new Promise<void>(resolve => host.listen(0, '127.0.0.1', resolve))
  const { port } = host.address() as AddressInfo
  origin = `https://api.test:${port}`
  ssh = await startSshServer(ssh2.utils.generateKeyPairSync('ed25519').private, [readPrivateKey(key).publicKey])
  await app.ask('PUT', '/v1/secrets/API', { value: VALUE })
  await app.ask('PUT', '/v1/secrets/DEPLOY', { value: key })
  const hosts = [`api.test:${port}`]
  id = await app.sandbox({
    networkAllowOut: ['*.test', '127.0.0.0/8'],
    secrets: [
      { secret: 'API', hosts, as: { header: 'x-key' } },
      { secret: 'API', hosts, as: { basic: { user: 'git' } } },
      { secret: 'API', hosts, as: { env: 'API_TOKEN' } },
      { secret: 'DEPLOY', hosts: [`git.test:${ssh.port}`], as: { ssh: { user: 'git' } } },
    ],
  })
}, 300_000)
afterAll(() => {
  host.close()
  ssh.close()
})

const direct = 'env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY'
const curl = 'curl -sS -H "x-token: $API_TOKEN"'
const python = `python3 -c 'import os, sys, urllib.request as u
print(u.urlopen(u.Request(sys.argv[1], headers={"x-token": os.environ["API_TOKEN"]})).read().decode())'`

test.each([
  ['curl', curl],
  ['curl without a proxy', `${direct} ${curl}`],
  ['curl by the system’s store alone', `${direct} -u SSL_CERT_FILE -u CURL_CA_BUNDLE ${curl}`],
  ['Python', python],
  ['Python without a proxy', `${direct} ${python}`],
])('in a container %s uses a header, a password and a placeholder', async (_, command) => {
  expect((await app.shell(id, `${command} ${origin}/x 2>&1`)).trim()).toBe(`${MASK} ${MASK}`)
  expect(told.pop()).toBe('true true true')
})

test('git in a container reads a repository that wants a password', async () => {
  expect(await app.shell(id, `${direct} git ls-remote ${origin}/repository 2>&1`)).toContain('refs/heads/main')
})

test('ssh in a container logs in by its agent', async () => {
  const options = '-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -o LogLevel=ERROR'
  expect(await app.shell(id, `ssh ${options} -p ${ssh.port} git@git.test a command 2>&1`)).toBe('ran a command')
})

test('nothing in a container has a secret: regression', async () => {
  // Split, so that the command does not find itself.
  const value = `'${VALUE.slice(0, 9)}''${VALUE.slice(9)}'`
  const search = `env | grep -c -F -e ${value}; grep -rlsFa -e ${value} /etc /home /run /tmp /proc/[0-9]*/environ; true`
  expect((await app.shell(id, search)).trim()).toBe('0')
  expect(app.log.join()).not.toContain(VALUE)
})
