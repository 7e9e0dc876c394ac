import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDockerBackend, type DockerOptions } from '../../plugins/docker/index.ts'
import { newId } from '../../src/db/id.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Backend, CreateProgress, Environment, EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { busyboxLayer, importBusybox } from '../support/docker-images.ts'
import { run, useDockerd } from '../support/dockerd.ts'
import { startRegistry } from '../support/registry.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

const executable = join(import.meta.dir, '../../dist/threadbox')
const scratch = mkdtempSync(join(tmpdir(), 'threadbox-docker-'))
const newDirectory = () => mkdtempSync(join(scratch, 'data-'))
const tlsPort = await freePort()
const dockerd = useDockerd({
  flags: [
    ...['--host', `tcp://127.0.0.1:${tlsPort}`, '--tlsverify', `--tlscacert=${scratch}/ca.pem`],
    ...[`--tlscert=${scratch}/server.pem`, `--tlskey=${scratch}/server-key.pem`],
  ],
  before: makeCertificates,
})
const log: string[] = []
let backend: Backend

const backendIn = (dataDirectory: string, options: Partial<DockerOptions> = {}) =>
  createDockerBackend({
    dataDirectory,
    image: 'busybox',
    variables: { DOCKER_HOST: dockerd.host },
    executable,
    log: line => log.push(line),
    ...options,
  })
const created = (spec: Partial<EnvironmentSpec> = {}, by = backend) =>
  by.create({ id: newId('env'), limits: {}, ...spec })
const output = async (environment: Environment, command: string) =>
  (await runCommand(environment, { command, timeoutMs: 30_000 })).stdout.trim()
const owned = async () => (await dockerd.api.containers()).map(({ Names }) => Names[0]).sort()
const processOf = async (environment: Environment): Promise<number> =>
  (await dockerd.api.ask('GET', `/containers${nameOf(environment)}/json`)).State.Pid
const nameOf = ({ id }: { id: string }) => `/threadbox-${id}`

beforeAll(async () => {
  await importBusybox(dockerd.api)
  backend = backendIn(newDirectory())
})

afterAll(async () => {
  await backend.close()
  rmSync(scratch, { recursive: true })
})

/** Certificates of one authority for the engine and for its clients, named as docker names them. */
async function makeCertificates(): Promise<void> {
  const at = (name: string) => join(scratch, name)
  const request = ['openssl', 'req', '-newkey', 'rsa:2048', '-nodes', '-batch']
  await run(
    ...request,
    '-x509',
    '-days',
    '2',
    '-subj',
    '/CN=authority',
    '-keyout',
    at('ca-key.pem'),
    '-out',
    at('ca.pem'),
  )
  for (const [prefix, use] of [
    ['server', 'serverAuth'],
    ['', 'clientAuth'],
  ] as const) {
    const [key, cert] = prefix ? [`${prefix}-key.pem`, `${prefix}.pem`] : ['key.pem', 'cert.pem']
    await Bun.write(at('extensions'), `extendedKeyUsage=${use}\nsubjectAltName=IP:127.0.0.1\n`)
    await run(...request, '-subj', '/CN=one', '-keyout', at(key), '-out', at('request.pem'))
    await run(
      ...[
        'openssl',
        'x509',
        '-req',
        '-days',
        '2',
        '-in',
        at('request.pem'),
        '-CA',
        at('ca.pem'),
        '-CAkey',
        at('ca-key.pem'),
      ],
      ...['-CAcreateserial', '-extfile', at('extensions'), '-out', at(cert)],
    )
  }
}

async function freePort(): Promise<number> {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = server
  server.stop(true)
  return port
}

test('an engine elsewhere, by TCP with TLS, does all the same', async () => {
  const variables = { DOCKER_HOST: `tcp://127.0.0.1:${tlsPort}`, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: scratch }
  const remote = backendIn(newDirectory(), { variables })
  const environment = await created({}, remote)
  expect(await output(environment, 'echo over TLS')).toBe('over TLS')
  await environment.files.write('/tmp/large', new Uint8Array(5_000_000))
  expect((await new Response((await environment.files.read('/tmp/large')).body).bytes()).byteLength).toBe(5_000_000)
  await environment.destroy()
  await remote.close()
})

test.each([
  ['without a certificate', { DOCKER_HOST: `tcp://127.0.0.1:${tlsPort}` }],
  ['whose certificates are not there', { DOCKER_HOST: `https://127.0.0.1:${tlsPort}`, DOCKER_CERT_PATH: '/nowhere' }],
  ['that is not there', { DOCKER_HOST: 'unix:///nowhere/docker.sock' }],
  ['that cannot be named so', { DOCKER_HOST: 'ssh://somewhere' }],
])('an engine %s is unavailable, and doctor says what to do', async (_, variables) => {
  const lost = backendIn(newDirectory(), { variables })
  expect(await lost.list()).toEqual([])
  expect(await lost.open(newId('env'))).toBeUndefined()
  await expect(created({}, lost)).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  const [check] = await lost.check()
  expect(check).toMatchObject({ name: 'engine', ok: false, required: true, remedy: expect.any(String) })
  await lost.close()
})

test('doctor tries a container and leaves nothing', async () => {
  const dataDirectory = join(newDirectory(), 'none-yet')
  const before = await owned()
  const checks = await backendIn(dataDirectory).check()
  expect(checks.filter(({ ok, required }) => required && !ok)).toEqual([])
  expect(checks.map(({ name }) => name)).toEqual([
    'engine',
    'limits',
    'containers',
    'transparent network',
    'seccomp',
    'disk quota',
  ])
  expect(checks.find(({ name }) => name === 'transparent network')).toMatchObject({ ok: true, required: false })
  expect(checks.find(({ name }) => name === 'disk quota')).toMatchObject({ ok: false, required: false })
  expect([await owned(), existsSync(dataDirectory)]).toEqual([before, false])
})

test('the guest is brought once to an engine, and again when somebody has taken it away', async () => {
  const environment = await created()
  const [volume] = (await dockerd.api.ask('GET', '/volumes')).Volumes
  expect(volume.Name).toBe('threadbox-guest')
  await environment.destroy()
  const guests = () => readdirSync(volume.Mountpoint).filter(name => !name.startsWith('for-'))
  expect(guests()).toHaveLength(1)
  await dockerd.api.ask('DELETE', '/volumes/threadbox-guest')
  const again = await created()
  expect(await output(again, 'echo again')).toBe('again')
  expect(guests()).toHaveLength(1)
  await again.destroy()
})

test('a server that died while it brought the guest holds nobody up', async () => {
  const dataDirectory = newDirectory()
  const first = backendIn(dataDirectory)
  const environment = await created({}, first)
  await first.close()
  const { Config } = await dockerd.api.ask('GET', `/containers${nameOf(environment)}/json`)
  const Labels = { 'threadbox.data': Config.Labels['threadbox.data'] }
  const filler = JSON.stringify({ Image: 'busybox', Cmd: ['none'], Labels })
  await dockerd.api.ask('POST', '/containers/create?name=threadbox-guest-filler', filler)
  const second = backendIn(dataDirectory)
  expect(await output((await second.open(environment.id))!, 'echo on')).toBe('on')
  await (await second.open(environment.id))?.destroy()
  await second.close()
  expect(await owned()).not.toContain('/threadbox-guest-filler')
})

test('another build of the server brings its guest to containers with their next start', async () => {
  const dataDirectory = newDirectory()
  const first = backendIn(dataDirectory)
  const environment = await created({}, first)
  await output(environment, 'echo kept >/f')
  const guest = async () => readlinkSync(`/proc/${await processOf(environment)}/exe`)
  const before = await guest()
  await first.close()
  const newer = join(scratch, 'threadbox')
  copyFileSync(executable, newer)
  utimesSync(newer, new Date(), new Date(Date.now() + 5000))
  const second = backendIn(dataDirectory, { executable: newer })
  const found = (await second.open(environment.id))!
  expect([await output(found, 'cat /f'), await guest()]).toEqual(['kept', before])
  await found.pause?.()
  expect(await output(found, 'cat /f')).toBe('kept')
  expect(await guest()).not.toBe(before)
  await found.destroy()
  await second.close()
  rmSync(newer)
})

test('servers see the containers of their own data directory, also those that were only begun', async () => {
  const [one, other] = [newDirectory(), newDirectory()]
  const [mine, theirs] = [backendIn(one), backendIn(other)]
  const [environment, foreign] = [await created({}, mine), await created({}, theirs)]
  const begun = newId('env')
  const { Config, HostConfig } = await dockerd.api.ask('GET', `/containers${nameOf(environment)}/json`)
  const labels = { ...Config.Labels, 'threadbox.environment': begun }
  const body = JSON.stringify({ ...Config, Labels: labels, HostConfig })
  await dockerd.api.ask('POST', `/containers/create?name=threadbox-${begun}`, body)
  await mine.close()
  const again = backendIn(one)
  expect((await again.list()).sort()).toEqual([environment.id, begun].sort())
  await (await again.open(begun))?.destroy()
  expect(await again.open(foreign.id)).toBeUndefined()
  expect(await output((await again.open(environment.id))!, 'echo mine')).toBe('mine')
  await (await again.open(environment.id))?.destroy()
  await foreign.destroy()
  await Promise.all([again.close(), theirs.close()])
  expect((await owned()).filter(name => /env_/.test(name))).toEqual([])
})

test('an image is pulled when it is missing, once, and said to be; what cannot be had says why', async () => {
  const registry = await startRegistry(await busyboxLayer())
  try {
    log.splice(0)
    const image = `${registry.host}/tools:1`
    const said: CreateProgress[] = []
    const onProgress = (progress: CreateProgress) => void said.push(progress)
    const both = await Promise.all([created({ image, onProgress }), created({ image })])
    expect(said[0]).toMatchObject({ message: `pulling the image ${image}` })
    expect(said.at(-1)).toEqual({ message: 'starting the container' })
    expect(await output(both[0], 'echo "$PATH"')).toBe('/tools')
    expect(registry.requests.filter(path => path.endsWith('/manifests/1'))).toHaveLength(1)
    expect(log).toEqual([`pulling the image ${image}`, `pulled the image ${image}`])
    await Promise.all(both.map(each => each.destroy()))
    for (const missing of ['tools:2', 'none', 'secret:1']) {
      const wanted = `${registry.host}/${missing}`
      const refusal = {
        code: 'invalid_request',
        message: expect.stringContaining(`The image ${wanted} cannot be had: `),
      }
      await expect(created({ image: wanted })).rejects.toMatchObject(refusal)
    }
  } finally {
    await registry.stop()
  }
  await expect(created({ image: `${registry.host}/other:1` })).rejects.toMatchObject({ code: 'sandbox_unavailable' })
})

test('an engine that is killed takes commands with it, clearly; when it is back, all goes on', async () => {
  const [environment, unwanted] = [await created(), await created()]
  await output(environment, 'echo kept >/home/user/f')
  const running = output(environment, 'echo >/started; sleep 1000')
  running.catch(() => {})
  await until(async () => (await environment.files.info('/started')) !== undefined)
  await dockerd.kill()
  await expect(running).rejects.toMatchObject({ code: 'sandbox_unavailable' })
  const refusal = { code: 'sandbox_unavailable', message: expect.stringContaining('does not answer') }
  await expect(output(environment, 'true')).rejects.toMatchObject(refusal)
  await expect(created()).rejects.toMatchObject(refusal)
  await expect(unwanted.destroy()).rejects.toMatchObject(refusal)
  expect(await backend.open(unwanted.id)).toBeUndefined()
  await dockerd.start()
  expect(await output(environment, 'cat f')).toBe('kept')
  const other = await created()
  await Promise.all([environment.destroy(), other.destroy()])
  // What could not be deleted then is deleted now.
  await until(async () => !(await owned()).some(name => /env_/.test(name)))
})

test('an engine that is restarted starts sandboxes with their next use', async () => {
  const environment = await created()
  await output(environment, 'echo kept >/home/user/f')
  await dockerd.stop()
  await dockerd.start()
  expect(await output(environment, 'cat f')).toBe('kept')
  await environment.destroy()
})

test('an engine without space says so', async () => {
  const environment = await created()
  const disk = join(dockerd.directory, 'data')
  await run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'full', join(disk, 'containers'))
  try {
    await run('sh', '-c', `head -c 2000000 /dev/zero >${disk}/containers/x || true`)
    await expect(created()).rejects.toMatchObject({
      code: 'disk_full',
      message: expect.stringContaining('no space is left where the Docker engine keeps its data'),
    })
  } finally {
    await run('umount', join(disk, 'containers'))
  }
  expect(await output(environment, 'echo on')).toBe('on')
  await environment.destroy()
  expect(existsSync(join(disk, 'containers/x'))).toBe(false)
})

test('what a check has made when it is killed is found by who cleans up its new data directory', async () => {
  const dataDirectory = newDirectory()
  // Held in the midst, with its container there: as a killed one leaves it.
  const checking = backendIn(dataDirectory).check()
  await until(async () => (await owned()).some(name => name.startsWith('/threadbox-doctor-')))
  const other = backendIn(dataDirectory)
  await until(async () => (await other.list()).some(id => id.startsWith('doctor-')))
  await checking
  await other.close()
})
