import { beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTrust } from '../../src/core/trust/trust.ts'
import { AUTHORITY_FILE, BUNDLE_FILE, trustVariables } from '../../src/core/trust/variables.ts'
import type { BoundSecret } from '../../src/egress/secrets/binding.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Environment } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'
import { Authority } from '../tls/certificates.ts'

const app = useApp()
const secrets: BoundSecret[] = []
const log: string[] = []
let authority: Authority
let plain: Environment
let bound: Environment

const HOST_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl'

const secret = (as: BoundSecret['as'], placeholder?: string): BoundSecret => ({
  ...{ name: 'KEY', hosts: ['api.example.com'], as },
  ...(placeholder !== undefined && { placeholder }),
  value: () => 'never asked for',
})

function newAuthority(name: string): Authority {
  const directory = join(app.directory, name)
  mkdirSync(directory)
  return new Authority(directory)
}

const pemOf = ({ certFile }: Authority) => readFileSync(certFile, 'utf8')

const trustOf = (current: () => Authority) =>
  createTrust({
    secretsOf: () => secrets,
    certificatePem: async () => pemOf(current()),
    log: line => void log.push(line),
  })

const run = async (command: string, environment = bound, env: Record<string, string> = {}) =>
  await runCommand(environment, { command, env, timeoutMs: 55_000 })

/** A TLS server inside, whose certificate the authority has signed. */
async function serveTls(at: number, by: Authority): Promise<void> {
  const { cert, key } = by.issue(`server-${at}`)
  await plain.files.write(`/srv/${at}.pem`, Buffer.concat([readFileSync(key), readFileSync(cert)]))
  const script = `import http.server, ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('/srv/${at}.pem')
server = http.server.ThreadingHTTPServer(('127.0.0.1', ${at}), http.server.SimpleHTTPRequestHandler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()`
  await plain.files.write(`/srv/${at}.py`, Buffer.from(script))
  await run(`cd /srv && nohup python3 /srv/${at}.py >/dev/null 2>&1 &`, plain)
  await until(async () => (await run(`exec 3<>/dev/tcp/127.0.0.1/${at}`, plain)).exitCode === 0)
}

beforeAll(async () => {
  const id = await app.sandbox({ envs: { OF_SANDBOX: 'yes' } })
  const { environmentId, backend } = app.beside(
    db => db.query('SELECT environment_id AS environmentId, backend FROM sandboxes WHERE id = ?').get(id) as any,
  )
  plain = await app.runtime.environments.get({ environmentId, backend })
  authority = newAuthority('first')
  await serveTls(8443, authority)
})

test('without a secret nothing is put into a sandbox, and it is the environment itself', async () => {
  const trust = trustOf(() => authority)
  expect(trust.bind(plain)).toBe(plain)
  await run('true', await trust.prepare(plain), {})
  expect(await plain.files.info('/etc/threadbox')).toBeUndefined()
  expect((await run('env', plain)).stdout).not.toContain('SSL_CERT_FILE')
})

describe('with a secret for a host', () => {
  beforeAll(async () => {
    secrets.push(secret({ header: 'authorization' }), secret({ env: 'API_KEY' }, 'placeholder-1'))
    bound = await trustOf(() => authority).prepare(plain)
  })

  const clients: [string, string][] = [
    ['curl', 'curl -fsS https://localhost:8443/'],
    ['python', `python3 -c 'import urllib.request as u; u.urlopen("https://localhost:8443/").read()'`],
    ['node', `node -e 'require("https").get("https://localhost:8443/", a => process.exit(a.statusCode - 200))'`],
    ['openssl', 'openssl s_client -verify_return_error -connect localhost:8443 </dev/null'],
    // It is no repository, which git says only once it has heard that from the server.
    ['git', 'git ls-remote https://localhost:8443/ 2>&1 | grep -q "not found"'],
  ]
  for (const [name, command] of clients) {
    test(`${name} trusts what the authority has signed`, async () => {
      const { exitCode, stdout, stderr } = await run(command)
      expect({ exitCode, said: exitCode === 0 ? '' : stdout + stderr }).toEqual({ exitCode: 0, said: '' })
      expect((await run(command.replaceAll('localhost:8443', '127.0.0.2:8443'))).exitCode).not.toBe(0)
    })
  }

  test('a program without any of the variables trusts it by the store of the system', async () => {
    expect((await run('env -i PATH="$PATH" curl -fsS https://localhost:8443/')).exitCode).toBe(0)
  })

  test('the store of the system still has it after it was written anew', async () => {
    // Without the certificates of the public, which take it a second.
    expect((await run('update-ca-certificates --certsconf /dev/null')).exitCode).toBe(0)
    expect((await run('env -i PATH="$PATH" curl -fsS https://localhost:8443/')).exitCode).toBe(0)
  })

  test('every way of starting a program has the variables, and those of the caller win', async () => {
    expect((await run('echo $SSL_CERT_FILE $API_KEY')).stdout).toBe(`${BUNDLE_FILE} placeholder-1\n`)
    const given = { SSL_CERT_FILE: '/own', API_KEY: 'own' }
    expect((await run('echo $SSL_CERT_FILE $API_KEY $GIT_SSL_CAINFO', bound, given)).stdout).toBe(
      `/own own ${BUNDLE_FILE}\n`,
    )
    const { pid } = await bound.processes!.start({ command: 'echo $NODE_EXTRA_CA_CERTS $API_KEY' })
    const { pieces } = await bound.processes!.read(pid, 0, { wait: true })
    expect(Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()).toBe(`${AUTHORITY_FILE} placeholder-1\n`)
  })

  test('every variable names a file that everybody inside may read', async () => {
    for (const path of new Set(Object.values(trustVariables)))
      expect((await plain.files.info(path))?.permissions).toBe('-rw-r--r--')
  })

  test('another authority takes the place of the former one, which is trusted no more', async () => {
    const second = newAuthority('second')
    await serveTls(8444, second)
    let current = authority
    bound = trustOf(() => current).bind(plain)
    expect((await run('curl -fsS https://localhost:8443/')).exitCode).toBe(0)
    // Of a server that goes on, as that of a restored one.
    current = second
    expect((await run('curl -fsS https://localhost:8444/')).exitCode).toBe(0)
    expect((await run('curl -fsS https://localhost:8443/')).exitCode).toBe(60)
    const former = pemOf(authority).trim()
    for (const path of [BUNDLE_FILE, AUTHORITY_FILE, '/etc/ssl/certs/ca-certificates.crt'])
      expect(await run(`cat ${path}`).then(({ stdout }) => stdout.includes(former))).toBe(false)
  })

  test('a certificate that cannot be put there is a line for the operator, and the command runs', async () => {
    const broken = createTrust({
      secretsOf: () => secrets,
      certificatePem: async () => {
        throw new Error('no authority')
      },
      log: line => void log.push(line),
    })
    expect((await run('echo yes', broken.bind(plain))).stdout).toBe('yes\n')
    expect(log.join()).toContain('no authority')
    await expect(broken.prepare(plain)).rejects.toThrow('no authority')
  })
})

test('with a key for SSH alone, programs have an agent, again after a pause, and no store has the authority', async () => {
  const made = await app.sandbox()
  const place = app.beside(
    db => db.query('SELECT environment_id AS environmentId, backend FROM sandboxes WHERE id = ?').get(made) as any,
  )
  const environment = await app.runtime.environments.get(place)
  const trust = createTrust({
    secretsOf: () => [
      { ...secret({ ssh: { user: 'git', hostKeys: [HOST_KEY] } }), hosts: ['*.test', 'git.test:2222'] },
    ],
    certificatePem: async () => pemOf(authority),
    log: line => void log.push(line),
  })
  const withKey = await trust.prepare(environment)
  // The server, which has no key of this sandbox, answers.
  const list = () => run('echo $SSH_AUTH_SOCK; ssh-add -l', withKey)
  const answered = { stdout: '/run/threadbox/ssh-agent.sock\nThe agent has no identities.\n', exitCode: 1 }
  expect(await list()).toMatchObject(answered)
  await environment.pause?.()
  expect(await list()).toMatchObject(answered)
  expect((await run('runuser -u user -- ssh-add -l || su user -c "ssh-add -l"', withKey)).stdout).toContain(
    'no identities',
  )
  expect(await environment.files.info('/etc/threadbox')).toBeUndefined()
  // OpenSSH knows the host by the key that the binding names.
  const find = async (host: string) =>
    (await run(`ssh-keygen -F '${host}' -f /etc/ssh/ssh_known_hosts2`, withKey)).stdout
  for (const host of ['any.test', '[git.test]:2222']) expect(await find(host)).toContain(HOST_KEY)
  expect(await find('any.other')).toBe('')
})
